"""The page of a session in the admin: its fields, saved through the services, and its messages in pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.config import Config
from agents.config_file import DEMO_TOOLS
from agents.reasoning import Reasoning
from agents.registry import Registry
from agents.toolbox import DEFAULT_TOOLS
from chat import agents_setup
from chat.access import role_in
from chat.models import ChatMessage, SecurityEvent, Session, SessionRevision, SessionRun, User
from chat.services.sessions import lifecycle
from tests.admin.pages import form_in, page_of, said, soup_of
from tests.support.filled import ANSWER, DONE, HI, START, TOOL, fill
from tests.support.signed_in import signed_in

pytestmark = pytest.mark.django_db


def save(client: Client, session: Session, **changed: str) -> Any:
    """Change fields of the page in its current state, and save it."""
    form = form_in(client.get(page_of(session)), "session_form")
    return client.post(page_of(session), {**form, **changed})


def test_page_shows_what_a_session_is(admin: Client, session: Session) -> None:
    """ADM-01: the page has the title, prompt, model, state, owner, and the messages in order."""
    lifecycle.set_system_prompt(session=session, author=session.owner, system_prompt="Be brief.\n简短。")
    fill(session, START, HI, {**TOOL, "arguments": {"n": 1}}, ANSWER, DONE)
    page = admin.get(page_of(session))
    form = form_in(page, "session_form")
    assert (form["title"], form["system_prompt"]) == ("Plan", "Be brief.\r\n简短。")
    assert "Ana" in said(page)
    assert "Idle" in said(page)
    rows = [row["id"] for row in soup_of(page).select(".message-row, .marker")]
    assert rows == list(ChatMessage.objects.order_by("sequence").values_list("pk", flat=True))
    assert '{"n": 1}' in said(page)


def test_saving_goes_through_the_services(admin: Client, mia: User, session: Session) -> None:
    """ADM-02, MSG-11: only changed fields are saved, with a revision and a log entry."""
    before = session.revision
    save(admin, session, system_prompt="Be\r\nbrief.", title="Plan B")
    session.refresh_from_db()
    assert (session.title, session.system_prompt, session.revision) == ("Plan B", "Be\nbrief.", before + 2)
    assert list(SessionRevision.objects.values_list("kind", "user")) == [("title", mia.pk), ("system_prompt", mia.pk)]
    entry = LogEntry.objects.filter(action_flag=2).get()
    assert (entry.user, entry.object_id) == (mia, session.pk)
    assert entry.get_change_message() == "Changed Title and System prompt."


def test_saving_nothing_changes_nothing(admin: Client, session: Session) -> None:
    """MSG-12: line ends of other systems do not count as a change."""
    Session.objects.filter(pk=session.pk).update(system_prompt="\r\nOne\r\ntwo\n")
    save(admin, session)
    after = Session.objects.get()
    assert (after.system_prompt, after.revision) == ("\r\nOne\r\ntwo\n", session.revision)
    assert not LogEntry.objects.filter(action_flag=2).exists()


def test_stale_form_is_refused_and_keeps_the_input(admin: Client, ana: User, session: Session) -> None:
    """ADM-02: the page shows both texts; saving again replaces the other user's text."""
    form = form_in(admin.get(page_of(session)), "session_form")
    lifecycle.set_system_prompt(session=session, author=ana, system_prompt="Ana's")
    page = admin.post(page_of(session), {**form, "system_prompt": "Mia's", "title": "New"})
    assert Session.objects.get().system_prompt == "Ana's"
    assert Session.objects.get().title == "Plan"
    again = form_in(page, "session_form")
    assert (again["system_prompt"], again["title"]) == ("Mia's", "New")
    assert "Ana's" in soup_of(page).select_one(".conflict").get_text()  # type: ignore[union-attr]  # there is one
    assert admin.post(page_of(session), again).status_code == 302
    assert Session.objects.get().system_prompt == "Mia's"


def test_what_others_have_changed_elsewhere_stays(admin: Client, ana: User, session: Session) -> None:
    """ADM-02: a form opened before a change does not undo it."""
    form = form_in(admin.get(page_of(session)), "session_form")
    lifecycle.rename(session=session, author=ana, title="Ana's title")
    admin.post(page_of(session), {**form, "system_prompt": "Mia's"})
    after = Session.objects.get()
    assert (after.title, after.system_prompt) == ("Ana's title", "Mia's")


@pytest.mark.parametrize(
    "wrong",
    [{"title": "x" * 201}, {"system_prompt": "a\0"}, {"model": "demo/none"}, {"agent": "unknown"}, {"title": "\0"}],
)
def test_refused_input_stays_in_the_form(admin: Client, session: Session, wrong: dict[str, str]) -> None:
    """MSG-12: the error is clear, nothing is saved, and the input is kept."""
    page = save(admin, session, **{"title": "New", "system_prompt": "Mia's", **wrong})
    assert page.status_code == 200
    assert "Nothing was saved" in said(page)
    assert form_in(page, "session_form")["system_prompt"] in ("Mia's", "a\0")
    assert (Session.objects.get().title, Session.objects.get().system_prompt) == ("Plan", session.system_prompt)


@pytest.fixture
def thinkers() -> None:
    """Two models that replace the configured ones: the first has effort levels, and the second a thinking budget."""
    models = {
        "house": {
            "type": "openai",
            "base_url": "http://127.0.0.1:9/v1",
            "models": {"levels": {"reasoning_efforts": ["low", "high"]}},
        },
        "vendor": {"type": "anthropic", "models": {"claude-sonnet-4-5": {}}},
    }
    config = {"providers": models, "agents": {"assistant": {"model": "house/levels"}}}
    agents_setup.install(Registry(Config.model_validate(config), {}))


def test_reasoning_is_chosen(thinkers: None, admin: Client, mia: User, session: Session) -> None:
    """ADM-02, MSG-11: the effort alone, another model with a budget in one step, and the defaults can be chosen."""
    save(admin, session, reasoning_effort="high")
    assert Reasoning.of(Session.objects.get().config) == Reasoning("high")
    assert list(SessionRevision.objects.values_list("kind", "user")) == [("reasoning", mia.pk)]
    entry = LogEntry.objects.filter(action_flag=2).get()
    assert entry.get_change_message() == "Changed Reasoning effort."
    save(admin, session, model="vendor/claude-sonnet-4-5", reasoning_effort="", thinking_budget="8000")
    assert Reasoning.of(Session.objects.get().config) == Reasoning("", 8000)
    form = form_in(admin.get(page_of(session)), "session_form")
    assert (form["reasoning_effort"], form["thinking_budget"]) == ("", "8000")
    save(admin, session, thinking_budget="")
    assert Reasoning.of(Session.objects.get().config) == Reasoning()


@pytest.mark.parametrize(
    ("model", "wrong", "words"),
    [
        ("house/levels", {"reasoning_effort": "max"}, "doesn’t support the reasoning effort “max”"),
        ("house/levels", {"reasoning_effort": "utmost"}, "Select a valid choice"),
        ("house/levels", {"thinking_budget": "8000"}, "doesn’t support a thinking budget"),
        ("vendor/claude-sonnet-4-5", {"thinking_budget": "12"}, "The thinking budget must be 1,024 to 60,000 tokens"),
        ("vendor/claude-sonnet-4-5", {"thinking_budget": "many"}, "The thinking budget must be"),
        ("vendor/claude-sonnet-4-5", {"thinking_budget": "9" * 4000}, "at most 6 characters"),
    ],
)
def test_reasoning_that_the_model_does_not_take_is_refused(
    thinkers: None, admin: Client, ana: User, session: Session, model: str, wrong: dict[str, str], words: str
) -> None:
    """MSG-12: nothing is saved, not even the other fields, and what was typed stays."""
    provider, _slash, name = model.partition("/")
    lifecycle.set_model(session=session, author=ana, provider=provider, model=name)
    page = save(admin, session, title="New", **wrong)
    assert words in said(page)
    assert Session.objects.get().title == "Plan"
    assert Reasoning.of(Session.objects.get().config) == Reasoning()


def test_long_session_is_paged(admin: Client, session: Session, django_assert_max_num_queries: Any) -> None:
    """ADM-01: the last page comes first; each page takes the same time, however long the session is."""
    rows = [
        ChatMessage(session=session, sequence=n, revision=n, type="reasoning", text=f"No. {n}")
        for n in range(1, 10_001)
    ]
    ChatMessage.objects.bulk_create(rows, batch_size=500)
    with django_assert_max_num_queries(20):
        page = admin.get(page_of(session))
    assert [row.get_text() for row in soup_of(page).select(".place")] == [f"{n:,}" for n in range(9951, 10_001)]
    middle = admin.get(page_of(session), {"p": "3"})
    assert soup_of(middle).select_one(".place").get_text() == "101"  # type: ignore[union-attr]  # there is one
    assert soup_of(middle).select_one(".pages strong").get_text() == "3"  # type: ignore[union-attr]  # likewise


@pytest.mark.parametrize("number", ["", "0", "-1", "99999999999999999999", "x", "\0", "1e3"])
def test_odd_page_numbers_show_a_page(admin: Client, session: Session, number: str) -> None:
    """An invalid page number shows a page instead of an error (MSG-12)."""
    fill(session, START, HI, DONE)
    assert "Hi" in said(admin.get(page_of(session), {"p": number}))
    assert admin.get(page_of(session), {"p": number, "removed": ""}).status_code == 200


def test_page_costs_the_same_with_many_messages(admin: Client, session: Session) -> None:
    """ADM-01: the number of queries does not depend on the number of messages."""
    fill(session, START, HI, DONE)
    admin.get(page_of(session))
    with CaptureQueriesContext(connection) as few:
        admin.get(page_of(session))
    fill(session, *[HI, ANSWER] * 20)
    with CaptureQueriesContext(connection) as many:
        admin.get(page_of(session))
    assert len(few) == len(many)


def test_huge_texts_are_not_read_for_the_list(admin: Client, session: Session) -> None:
    """MSG-12, ADM-01: the list reads only the beginning of each text."""
    fill(session, START, {**HI, "text": "a" * 2_000_000}, {**TOOL, "result": "b" * 2_000_000}, DONE)
    assert len(admin.get(page_of(session)).content) < 60_000


def test_hand_written_rows_are_shown(admin: Client, session: Session) -> None:
    """MSG-10: the page shows hand-written rows, whatever fields they lack."""
    fill(session, {"role": ""}, {"type": "tool_group"}, {"type": "tool_group", "arguments": ["x"]}, {"role": "robot"})
    assert len(soup_of(admin.get(page_of(session))).select(".message-row")) == 4


def test_state_address_returns_the_state_of_the_run(admin: Client, session: Session) -> None:
    """ADM-01, RUN-03: the address that the page's script polls has the state of the run."""
    address = soup_of(admin.get(page_of(session))).select_one("#session-facts")["data-state-url"]  # type: ignore[index]  # there is one
    assert admin.get(str(address)).json()["works"] is False
    SessionRun.objects.update(state="running", turn_id="t_1")
    progress = admin.get(str(address)).json()
    assert (progress["works"], progress["revision"], "Working" in progress["state"]) == (True, session.revision, True)


@pytest.mark.parametrize("status", ["archived", "deleted"])
def test_archived_and_deleted_sessions_can_be_looked_at(admin: Client, session: Session, status: str) -> None:
    """ADM-01: messages of an archived session have no actions; a deleted session can be restored."""
    fill(session, START, HI, DONE)
    form = form_in(admin.get(page_of(session)), "session_form")
    Session.objects.update(status=status)
    page = admin.get(page_of(session))
    assert "Hi" in said(page)
    actions = {str(button["value"]).split()[0] for button in soup_of(page).select("[form=actions]:not([hidden])")}
    assert actions == ({"unarchive", "fork"} if status == "archived" else {"undelete"})
    saved = admin.post(page_of(session), {**form, "title": "New"})
    assert saved.status_code == (302 if status == "archived" else 403)


def test_anonymous_and_people_are_sent_to_sign_in(ana: User, session: Session) -> None:
    """LIVE-06: the session's owner is also sent to sign in; the owner has the session's own page."""
    for client in (Client(), signed_in(ana)):
        assert client.get(page_of(session))["Location"].startswith("/admin/login/")


def test_configuration_is_changed(admin: Client, session: Session) -> None:
    """ADM-01, MSG-09: tools, rounds and mode can be set to the offered values, and are in the history and the log."""
    page = admin.get(page_of(session))
    form = form_in(page, "session_form")
    tools = ", ".join([*(tool.name for tool in DEFAULT_TOOLS), *DEMO_TOOLS, "example__*"])
    assert (form["tools"], form["max_rounds"], form["mode"]) == (tools, "25", "agent")
    changed = {**form, "tools": "calculator ,", "max_rounds": "3", "mode": "chat"}
    assert admin.post(page_of(session), changed).status_code == 302
    session.refresh_from_db()
    assert (session.mode, session.config["tools"], session.config["max_rounds"]) == ("chat", ["calculator"], 3)
    form = form_in(admin.get(page_of(session)), "session_form")
    for wrong in ({"tools": "shell"}, {"max_rounds": "x"}, {"max_rounds": "9999"}, {"mode": "nonsense"}):
        refused = admin.post(page_of(session), {**form, **wrong})
        assert (refused.status_code, "Nothing was saved" in said(refused)) == (200, True)
    assert Session.objects.get(pk=session.pk).config == session.config


def test_session_is_opened_to_its_workspace(admin: Client, mia: User, bo: User, session: Session) -> None:
    """UI-23, ADM-02: the access is set by the share dialog's service and logged in both logs, although Mia is not a
    member."""
    form = form_in(admin.get(page_of(session)), "session_form")
    assert form["workspace_role"] == ""
    assert save(admin, session, workspace_role="viewer").status_code == 302
    session.refresh_from_db()
    assert role_in(bo, session) == "viewer"
    assert role_in(mia, session) is None
    event = SecurityEvent.objects.get(kind="shared")
    assert (event.actor, event.details["to"], event.details["role"]) == (mia, "workspace", "viewer")
    assert LogEntry.objects.filter(action_flag=2).get().get_change_message() == "Changed Workspace access."
    save(admin, session, workspace_role="")
    session.refresh_from_db()
    assert role_in(bo, session) is None


def test_only_who_may_read_messages_opens_a_session(staff_with: Any, bo: User, session: Session) -> None:
    """ADM-03: staff need the permission to read messages, because a member of the workspace could then read the
    session."""
    half = signed_in(staff_with("view_session", "change_session", name="half"))
    page = half.get(page_of(session))
    assert soup_of(page).select_one("[name=workspace_role]").has_attr("disabled")  # type: ignore[union-attr]  # it is there
    half.post(page_of(session), {**form_in(page, "session_form"), "workspace_role": "viewer"})
    assert Session.objects.get(pk=session.pk).workspace_role == ""


def test_session_of_a_former_member_is_not_opened(admin: Client, ana: User, session: Session) -> None:
    """UI-23: the session of a former member is opened neither by its owner nor by staff."""
    ana.memberships.all().delete()
    assert save(admin, session, workspace_role="editor").status_code == 200
    assert Session.objects.get(pk=session.pk).workspace_role == ""
