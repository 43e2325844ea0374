"""The context in the panel, for editors and viewers, in sessions of any length."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.db import connection
from django.template.loader import render_to_string
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.providers.scripted import ScriptedProvider
from chat import agents_setup
from chat.models import ChatMessage, ModelRequest, Session, User
from chat.projections.measure import Measure
from chat.runner.agent_input import build_agent_input
from chat.services.messages import editing
from chat.services.people import members_agents
from chat.services.people.members_agents import AgentSettings
from chat.services.sessions import lifecycle
from chat.services.sessions.agents import add_agent
from chat.services.sessions.forking import fork
from chat.views.context_page import PAGE
from tests.support.filled import ANSWER, CUT, DONE, HI, START, TOOL, fill
from tests.support.testing_node import ScriptedRegistry, let_in

pytestmark = pytest.mark.django_db
Said = Callable[[int], list[ChatMessage]]
OWN = {**ANSWER, "response_id": "r_1", "input_tokens": 300}


@pytest.fixture(autouse=True)
def _scripted() -> None:
    agents_setup.install(ScriptedRegistry(ScriptedProvider([])))


def page(session: Session, user: User, **asked: str) -> str:
    client = Client()
    client.force_login(user)
    response = client.get(f"/sessions/{session.pk}/context", asked)
    assert response.status_code == 200
    return response.content.decode()


def shown(html: str) -> list[str]:
    """Return the keys of the messages in order."""
    return re.findall(r'data-key="([^"]+)"', html)


def switches(html: str) -> dict[str, bool]:
    found = re.findall(r'data-include="([^"]+)"( checked)?', html)
    return {pk: bool(checked) for pk, checked in found}


def keep(session: Session, response_id: str = "r_1") -> None:
    """Record a request with the current rows, as a run does."""
    request = build_agent_input(session.pk).request
    names = ("revision", "agent", "provider", "model", "tools", "shared", "rows")
    ModelRequest.objects.create(
        session=session, response_id=response_id, **{name: getattr(request, name) for name in names}
    )


def test_editors_switch_and_viewers_see(session: Session, ana: User, bo: User) -> None:
    """UI-11, MSG-09: the page names who excluded a message; a tool result goes with its call."""
    let_in(session, bo, "viewer")
    rows = fill(session, START, {**HI, "user": ana}, OWN, {**TOOL, "response_id": "r_1"}, CUT, DONE)
    editing.set_included(session=session, author=ana, message_id=rows[1].pk, included=False)
    html = page(session, ana)
    assert shown(html) == [rows[1].pk, rows[2].pk, f"{rows[3].pk}-results", rows[4].pk]
    assert switches(html) == {rows[1].pk: False, rows[2].pk: True, rows[3].pk: True, rows[4].pk: True}
    assert "Excluded by Ana" in html
    assert "Truncated (the model gets a note)" in html
    read = page(session, bo)
    assert (shown(read), switches(read)) == (shown(html), {})


def test_a_conversation_can_be_compacted_here(session: Session, ana: User, bo: User) -> None:
    """CTX-07: editors can compact a conversation when there is something to summarize."""
    let_in(session, bo, "viewer")
    fill(session, START, HI, DONE)
    assert 'data-action="compact"' not in page(session, ana)
    for number in range(4):
        fill(session, START, HI, ANSWER, DONE, turn_id=f"t_{number}")
    assert 'data-action="compact"' in page(session, ana)
    assert 'data-action="compact"' not in page(session, bo)
    Session.objects.filter(pk=session.pk).update(status="archived")
    assert 'data-action="compact"' not in page(session, ana)


def test_archived_sessions_are_read(session: Session, ana: User) -> None:
    """The context of an archived session is read-only (UI-11)."""
    fill(session, START, HI, DONE)
    Session.objects.filter(pk=session.pk).update(status="archived")
    assert switches(page(session, ana)) == {}


def test_a_model_that_is_gone_is_said_so(session: Session, ana: User) -> None:
    """RUN-16: the page reports that the model is gone, and shows the rest."""
    rows = fill(session, START, HI, DONE)
    Session.objects.filter(pk=session.pk).update(provider="gone", model="x")
    html = page(session, ana)
    assert "isn’t configured" in html
    assert shown(html) == [rows[1].pk]


def test_a_long_session_is_drawn_page_by_page(session: Session, ana: User, said: Said) -> None:
    """ADM-01: the session is never drawn as a whole; the last page comes first, and each message is on some page."""
    said(1_000)
    seen: list[str] = []
    until = ""
    while True:
        html = page(session, ana, until=until)
        keys = shown(html)
        assert len(keys) <= PAGE
        seen = keys + seen
        earlier = re.search(r'data-until="(\d+)">\s*<svg[^>]*><use href="[^"]*#chevron-up"', html)
        if earlier is None:
            break
        until = earlier[1]
    assert 0 <= len(seen) - len(set(seen)) < PAGE  # the first page is full and overlaps the second
    assert {key.removesuffix("-results") for key in seen} >= set(
        ChatMessage.objects.filter(role="user").values_list("pk", flat=True)
    )
    for odd in ("0", "-1", "9" * 15, "x", "\0"):
        assert shown(page(session, ana, until=odd))


@pytest.mark.parametrize("past", [False, True])
def test_queries_do_not_grow(session: Session, ana: User, said: Said, past: bool) -> None:
    """ADM-01: one message takes as many queries as thirty."""
    counts: set[int] = set()
    client = Client()
    client.force_login(ana)
    for _ in range(2):
        rows = fill(session, START, {**HI, "user": ana}, {**OWN, "response_id": f"r_{len(counts)}"}, DONE)
        keep(session, f"r_{len(counts)}")
        asked = {"past": rows[2].pk} if past else {}
        with CaptureQueriesContext(connection) as queries:
            client.get(f"/sessions/{session.pk}/context", asked)
        counts.add(len(queries))
        for _ in range(30):
            fill(session, START, {**HI, "user": ana}, ANSWER, DONE)
    assert len(counts) == 1


def test_differences_between_the_sent_and_the_current_context_are_marked(session: Session, ana: User) -> None:
    """MSG-11: edited, excluded, removed and new messages and another prompt are marked, with old and new texts."""
    lifecycle.set_system_prompt(session=session, author=ana, system_prompt="Be kind.")
    rows = fill(session, START, {**HI, "user": ana}, {**HI, "text": "Two"}, {**HI, "text": "Three"}, OWN, DONE)
    ChatMessage.objects.filter(pk=rows[4].pk).update(include_in_context=False)
    keep(session)
    ChatMessage.objects.filter(pk=rows[4].pk).update(include_in_context=True)
    same = page(session, ana, past=rows[4].pk)
    assert "Nothing has changed since." in same
    assert switches(same) == {}
    editing.edit(session=session, author=ana, message_id=rows[1].pk, text="Hello & goodbye")
    editing.set_included(session=session, author=ana, message_id=rows[2].pk, included=False)
    editing.remove(session=session, author=ana, message_id=rows[3].pk)
    editing.add(session=session, author=ana, after_id=rows[1].pk, role="user", text="A new one")
    lifecycle.set_system_prompt(session=session, author=ana, system_prompt="Be brief.")
    html = page(session, ana, past=rows[4].pk)
    for words in (
        "the system prompt has changed", "1 message is edited", "1 message is excluded", "1 message is removed",
        "1 message is new", "Edited since", "Hello &amp; goodbye", "Excluded since", "Removed since", "A new one",
        "Be kind.", "Be brief.",
    ):  # fmt: skip
        assert words in html
    assert "Two" in html
    assert "Three" in html


def test_viewers_do_not_read_what_was_taken_out(session: Session, ana: User, bo: User) -> None:
    """LIVE-06: as in the history, only editors read removed messages; viewers see that something was removed."""
    let_in(session, bo, "viewer")
    rows = fill(session, START, HI, {**HI, "text": "A secret"}, OWN, DONE)
    keep(session)
    assert "A secret" in page(session, bo, past=rows[3].pk)
    editing.remove(session=session, author=ana, message_id=rows[2].pk)
    html = page(session, bo, past=rows[3].pk)
    assert "1 message is removed" in html
    assert "A secret" not in html
    assert "A secret" in page(session, ana, past=rows[3].pk)


def test_what_is_not_on_record_is_said_so(session: Session, ana: User) -> None:
    """RUN-13: the page does not guess the context of a copied answer, or of one without a recorded request."""
    rows = fill(session, START, HI, OWN, DONE)
    assert "No request on record" in page(session, ana, past=rows[2].pk)
    made = fork(session=session, author=ana, message_id=rows[2].pk)
    copied = ChatMessage.objects.get(session=made, role="assistant")
    assert "copied or imported from another session" in page(made, ana, past=copied.pk)


@pytest.mark.parametrize("asked", ["m_none", "x\0", "\ud800", "m_" + "0" * 10_000])
def test_unknown_messages_are_not_found(session: Session, ana: User, asked: str) -> None:
    """MSG-12, LIVE-06: messages of other sessions are not found either."""
    client = Client()
    client.force_login(ana)
    elsewhere = fill(lifecycle.create_session(owner=ana), START, HI)[1].pk
    for past in (asked.encode("utf-8", "surrogatepass"), elsewhere):
        assert client.get(f"/sessions/{session.pk}/context", {"past": past}).status_code == 404


def test_markup_in_messages_is_text(session: Session, ana: User) -> None:
    """MSG-12: users' texts are escaped everywhere in the list."""
    nasty = '<img src=x onerror=alert(1)>"\u202e'
    fill(session, START, {**HI, "text": nasty, "sender": nasty}, {**TOOL, "tool_name": nasty, "result": nasty}, DONE)
    html = page(session, ana)
    assert "<img" not in html
    assert "&lt;img" in html


def test_a_huge_text_costs_little(session: Session, ana: User) -> None:
    """MSG-12: the page shows the beginning and the length of a megabyte of text."""
    fill(session, START, {**HI, "text": "word " * 200_000}, DONE)
    html = page(session, ana)
    assert len(html) < 20_000
    assert "more characters" in html


def test_details_lead_to_what_was_sent(session: Session, ana: User) -> None:
    """UI-11: the details of an answer link to its context; those of users' messages do not."""
    rows = fill(session, START, HI, OWN, DONE)
    client = Client()
    client.force_login(ana)
    found = [
        'data-action="context-past"' in client.get(f"/sessions/{session.pk}/details", {"id": row.pk}).content.decode()
        for row in rows[1:3]
    ]
    assert found == [False, True]


def test_each_agent_s_request_can_be_chosen(session: Session, ana: User) -> None:
    """CTX-06: several agents have their own prompts, and the tab names the one that it shows."""
    fill(session, START, HI, ANSWER, DONE)
    assert 'id="context-agent"' not in page(session, ana)
    row = members_agents.make(
        author=ana, workspace_id=session.workspace_id, given=AgentSettings("Writer", system_prompt="Write verses.")
    )
    add_agent(session=session, author=ana, agent=row.name)
    session.refresh_from_db()
    of_own, of_other = page(session, ana), page(session, ana, agent=row.name)
    assert "System prompt of <bdi>Writer</bdi>" in of_other
    assert f'<option value="{row.name}" selected>' in of_other
    assert "Write verses." in of_other
    assert "Write verses." not in of_own
    assert page(session, ana, agent="no\x00one") == of_own


def test_the_panel_says_whose_prompt_it_shows(session: Session, ana: User) -> None:
    """UI-11: with one agent, the panel shows no agent's name."""
    client = Client()
    client.force_login(ana)
    row = members_agents.make(author=ana, workspace_id=session.workspace_id, given=AgentSettings("Writer"))
    assert "System prompt of" not in client.get(f"/sessions/{session.pk}/panel").content.decode()
    add_agent(session=session, author=ana, agent=row.name)
    assert "System prompt of <bdi>" in client.get(f"/sessions/{session.pk}/panel").content.decode()


@pytest.mark.parametrize(
    ("used", "words"), [(None, "No model has counted it yet."), (900, "the header has the last figure")]
)
def test_estimate_agrees_with_the_header(used: int | None, words: str) -> None:
    """UI-08: the figure that a model has counted is shown, although it was for an earlier context."""
    values = {"total": 10, "measure": Measure(10.0), "session": Session(context_used=used), "past": False}
    assert words in render_to_string("chat/panel/context_total.html", values)
