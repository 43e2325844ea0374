"""The message forms in the admin: one per type, saved through the services, keeping refused input."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from chat.admin.message_page import TextForm
from chat.models import ChatMessage, MessageRevision, Session, SessionRun, User
from chat.services.messages import editing
from tests.admin.pages import add_page, form_in, message_page, said, soup_of
from tests.support.filled import ANSWER, DONE, ERROR, HI, START, THOUGHT, TOOL, fill

pytestmark = pytest.mark.django_db
CALL = {**TOOL, "arguments": {"n": 1, "why": "好"}, "provider_data": {"raw_arguments": '{"n":1, "why": "好"}'}}
FORM = "message_form"


def save(client: Client, row: ChatMessage, **changed: str) -> Any:
    """Change fields of the form in its current state, and save it."""
    form = form_in(client.get(message_page(row)), FORM)
    return client.post(message_page(row), {**form, **changed})


def current(row: ChatMessage) -> ChatMessage:
    return ChatMessage.objects.get(pk=row.pk)


@pytest.mark.parametrize("fields", [HI, ANSWER, THOUGHT])
@pytest.mark.both_databases
def test_words_are_edited_in_a_big_box(admin: Client, mia: User, session: Session, fields: dict[str, Any]) -> None:
    """ADM-01, ADM-02, MSG-11, MSG-12: the text is kept exactly; the edit is in the history and in the log."""
    row = fill(session, START, fields, DONE)[1]
    text = "\n\n  Ho\n\u202eworld 😀\n\n"
    assert save(admin, row, text=text.replace("\n", "\r\n")).status_code == 302
    assert current(row).text == text
    assert form_in(admin.get(message_page(row)), FORM)["text"] == text.replace("\n", "\r\n")
    assert MessageRevision.objects.get().user == mia
    entry = LogEntry.objects.filter(action_flag=2).get()
    assert entry.get_change_message() == f"Changed Text for message “{row.pk} ({row.role})”."


def test_form_carries_a_long_text_once(admin: Client, session: Session) -> None:
    """MSG-12: the largest body of a form is made for the longest message, but not for two copies of it."""
    row = fill(session, START, {**HI, "text": "好" * 10_000}, DONE)[1]
    assert admin.get(message_page(row)).content.decode().count("好" * 10_000) == 1
    assert save(admin, row, text="好" * 20_000).status_code == 302
    assert current(row).text == "好" * 20_000


def test_tool_calls_have_boxes_for_arguments_and_result(admin: Client, session: Session) -> None:
    """ADM-01: the arguments are shown as indented JSON."""
    row = fill(session, START, HI, CALL, DONE)[2]
    form = form_in(admin.get(message_page(row)), FORM)
    assert form["arguments"] == '{\r\n  "n": 1,\r\n  "why": "好"\r\n}'
    assert form["result"] == "2"
    save(admin, row, arguments='{"n": [2.5, null]}', result="Two\r\nlines", is_error="on")
    changed = current(row)
    assert (changed.arguments, changed.result, changed.is_error) == ({"n": [2.5, None]}, "Two\nlines", True)
    assert "Changed Arguments, Result and Failed" in LogEntry.objects.filter(action_flag=2).get().get_change_message()


@pytest.mark.parametrize(
    "wrong",
    [
        *("[1]", '"n"', "null", "{", '{"n": NaN}', '{"n": 1e999}', '{"n": 1, "n": 2}', '{"n": "\\u0000"}'),
        *('{"n": "\\ud800"}', '{"n": "\0"}', "{" * 5000, "[" * 99999, "9" * 5000),
    ],
)
def test_arguments_that_are_no_object_are_refused(admin: Client, session: Session, wrong: str) -> None:
    """MSG-12: the error is next to the field, and the input is kept."""
    row = fill(session, START, HI, CALL, DONE)[2]
    page = save(admin, row, arguments=wrong, result="Mine")
    assert page.status_code == 200
    assert "Nothing was saved" in said(page)
    form = form_in(page, FORM)
    assert (form["result"], form["arguments"].replace("\ufffd", "\0")) == ("Mine", wrong)
    assert not MessageRevision.objects.exists()


def test_saving_nothing_changes_nothing(admin: Client, session: Session) -> None:
    """MSG-08, MSG-11: line breaks and JSON whitespace do not count as changes; the model's own text stays."""
    rows = fill(session, START, {**HI, "text": "a\r\nb"}, CALL, DONE)
    save(admin, rows[1])
    save(admin, rows[2], arguments='{"n":1,"why":"好"}')
    assert not MessageRevision.objects.exists()
    assert not LogEntry.objects.filter(action_flag=2).exists()
    assert (current(rows[1]).text, current(rows[2]).provider_data) == ("a\r\nb", CALL["provider_data"])


def test_changed_arguments_leave_the_result_as_it_is(admin: Client, session: Session) -> None:
    """MSG-12: its carriage returns, which forms do not keep, and the status of a call that was cut off."""
    row = fill(session, START, HI, {**CALL, "result": "1%\r50%\r\n", "status": "interrupted"}, DONE)[2]
    save(admin, row, arguments='{"n": 2}')
    changed = current(row)
    assert (changed.arguments, changed.result, changed.status) == ({"n": 2}, "1%\r50%\r\n", "interrupted")


def test_stale_edit_of_a_text_is_refused_and_keeps_the_input(admin: Client, ana: User, session: Session) -> None:
    """ADM-02, MSG-11: the page shows both texts; saving again replaces the text that it shows."""
    row = fill(session, START, HI, DONE)[1]
    form = form_in(admin.get(message_page(row)), FORM)
    editing.edit(session=session, author=ana, message_id=row.pk, text="Ana's")
    page = admin.post(message_page(row), {**form, "text": "Mia's"})
    assert current(row).text == "Ana's"
    assert "Ana's" in soup_of(page).select_one(".conflict").get_text()  # type: ignore[union-attr]  # there is one
    again = form_in(page, FORM)
    assert again["text"] == "Mia's"
    assert admin.post(message_page(row), again).status_code == 302
    assert current(row).text == "Mia's"


def test_stale_edit_of_a_tool_call_is_refused_and_keeps_the_input(admin: Client, ana: User, session: Session) -> None:
    """A stale edit of a tool call is refused and keeps the input (ADM-02, MSG-11)."""
    row = fill(session, START, HI, CALL, DONE)[2]
    form = form_in(admin.get(message_page(row)), FORM)
    about: dict[str, Any] = {"session": session, "author": ana, "message_id": row.pk}
    editing.edit_tool_call(**about, arguments={"n": 7}, result="Ana's", is_error=False)
    page = admin.post(message_page(row), {**form, "result": "Mia's"})
    assert [box.get_text() for box in soup_of(page).select(".conflict .said")] == ['{\n  "n": 7\n}', "Ana's"]
    assert current(row).result == "Ana's"
    assert admin.post(message_page(row), form_in(page, FORM)).status_code == 302
    assert current(row).result == "Mia's"


@pytest.mark.parametrize("status", ["streaming", "pending", "running", "waiting"])
def test_message_that_the_agent_still_writes_has_no_open_form(admin: Client, session: Session, status: str) -> None:
    """A form with the contents so far would overwrite the finished ones (ADM-02)."""
    SessionRun.objects.update(state="running", turn_id="t_1")
    row = fill(session, START, HI, {**CALL, "status": status, "result": ""})[2]
    form = form_in(admin.get(message_page(row)), FORM)
    assert not {"arguments", "result", "is_error"} & form.keys()
    assert "Save" not in [
        button.get_text(strip=True) for button in soup_of(admin.get(message_page(row))).select("button")
    ]


def test_values_that_changed_without_a_version_are_not_overwritten_unseen(admin: Client, session: Session) -> None:
    """The agent and an erasure write no version (ADM-02, MSG-11). Fields that were not changed keep the new value."""
    row = fill(session, START, HI, CALL, DONE)[2]
    form = form_in(admin.get(message_page(row)), FORM)
    ChatMessage.objects.filter(pk=row.pk).update(result="Long", is_error=True)
    page = admin.post(message_page(row), {**form, "arguments": '{"n": 2}'})
    assert [box.get_text() for box in soup_of(page).select(".conflict .said")] == ["Long", "Yes"]
    assert current(row).arguments == CALL["arguments"]
    assert admin.post(message_page(row), form_in(page, FORM)).status_code == 302
    saved = current(row)
    assert (saved.arguments, saved.result, saved.is_error) == ({"n": 2}, "Long", True)


@pytest.mark.parametrize(
    ("in_between", "words"),
    [("removed", "was removed while you were editing"), ("archived", "is archived"), ("runs", "is using this message")],
)
@pytest.mark.both_databases
def test_refusal_says_why_and_loses_nothing(
    admin: Client, ana: User, session: Session, in_between: str, words: str
) -> None:
    """ADM-02: a running turn is not changed, and the input is kept."""
    row = fill(session, START, HI, ANSWER, DONE)[1]
    form = form_in(admin.get(message_page(row)), FORM)
    if in_between == "removed":
        editing.remove(session=session, author=ana, message_id=row.pk)
    elif in_between == "archived":
        Session.objects.update(status="archived")
    else:
        SessionRun.objects.update(state="running", turn_id="t_1")
    page = admin.post(message_page(row), {**form, "text": "Mia's"})
    assert words in said(page)
    assert form_in(page, FORM)["text"] == "Mia's"
    assert current(row).text == "Hi"


def test_input_for_a_message_that_was_deleted_since_is_kept(
    admin: Client, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ADM-02: a purge can delete a message between the check of the form and the lock of the session."""
    row = fill(session, START, HI, DONE)[1]
    form = form_in(admin.get(message_page(row)), FORM)
    monkeypatch.setattr(TextForm, "clean", lambda _form: ChatMessage.objects.filter(pk=row.pk).delete() and None)
    page = admin.post(message_page(row), {**form, "text": "Mia's"})
    assert "was removed while you were editing" in said(page)
    assert form_in(page, FORM)["text"] == "Mia's"


@pytest.mark.parametrize("fields", [ERROR, {"type": "turn_done"}])
def test_what_has_no_form_is_shown(admin: Client, session: Session, fields: dict[str, Any]) -> None:
    """Messages that can't be edited are shown read-only (ADM-01, MSG-09)."""
    row = fill(session, START, HI, fields)[2]
    page = admin.get(message_page(row))
    assert str(fields.get("text", "")) in said(page)
    assert soup_of(page).find("form", id=FORM) is None
    assert admin.post(message_page(row), {"text": "x"}).status_code == 404


def test_history_is_on_the_page(admin: Client, ana: User, session: Session) -> None:
    """MSG-11: the page has each change with its user and the previous text, the newest first."""
    row = fill(session, START, HI, ANSWER, DONE)[1]
    save(admin, row, text="Ho")
    editing.set_included(session=session, author=ana, message_id=row.pk, included=False)
    items = soup_of(admin.get(message_page(row))).select(".versions li")
    versions = [" ".join(item.get_text(" ").split()) for item in items]
    assert [version.split(" · ")[0] for version in versions] == ["Excluded from context", "Edited"]
    assert "Ana" in versions[0]
    assert versions[1].endswith("Earlier versions Hi")


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_message_is_added_between_others(admin: Client, mia: User, session: Session, role: str) -> None:
    """Staff can add a message between two others (ADM-01, MSG-11)."""
    rows = fill(session, START, HI, ANSWER, DONE)
    answer = admin.post(f"{add_page(session)}?after={rows[1].pk}", {"role": role, "text": "\r\nMore\r\n"})
    made = ChatMessage.objects.get(sequence=3)
    assert (made.role, made.text, made.sender) == (role, "\nMore\n", "Mia" if role == "user" else "")
    assert answer["Location"].endswith(f"?p=1#{made.pk}")
    assert LogEntry.objects.filter(action_flag=2).get().get_change_message() == f"Added message “{made.pk} ({role})”."


def test_form_that_is_sent_twice_adds_one_message(admin: Client, session: Session) -> None:
    """MSG-02: a double click, or a request that the browser repeats."""
    fill(session, START, HI, ANSWER, DONE)
    form = {**form_in(admin.get(add_page(session)), FORM), "role": "user", "text": "Once"}
    first, second = admin.post(add_page(session), form), admin.post(add_page(session), form)
    assert ChatMessage.objects.filter(text="Once").count() == 1
    assert first["Location"] == second["Location"]
    assert LogEntry.objects.filter(action_flag=2).count() == 1
    assert "Use a new key." in said(admin.post(add_page(session), {**form, "text": "Another"}))


def test_refused_addition_loses_nothing(admin: Client, ana: User, session: Session) -> None:
    """ADM-02: a message is refused if its predecessor was removed, or if the agent has started to work."""
    rows = fill(session, START, HI, ANSWER, DONE)
    address = f"{add_page(session)}?after={rows[1].pk}"
    editing.remove(session=session, author=ana, message_id=rows[1].pk)
    page = admin.post(address, {"role": "system", "text": "Mia's"})
    assert "was removed while you were editing" in said(page)
    assert (form_in(page, FORM)["text"], form_in(page, FORM)["role"]) == ("Mia's", "system")
    SessionRun.objects.update(state="running", turn_id="t_1")
    page = admin.post(add_page(session), {"role": "system", "text": "Mia's"})
    assert "The agent is working" in said(page)
    assert form_in(page, FORM)["text"] == "Mia's"
    assert not ChatMessage.objects.filter(text="Mia's").exists()


@pytest.mark.parametrize("message_id", ["m_none", "%00", "of another session", "x" * 300])
@pytest.mark.both_databases
def test_unknown_message_is_not_found(admin: Client, session: Session, ana: User, message_id: str) -> None:
    """MSG-12, LIVE-06: a message of another session is not found either."""
    other = Session.objects.create(workspace=session.workspace, owner=ana)
    SessionRun.objects.create(session=other)
    known = fill(other, HI)[0].pk if " " in message_id else message_id
    base = add_page(session).removesuffix("add/")
    assert admin.get(f"{base}{known}/").status_code == 404
    assert admin.post(f"{base}{known}/", {"text": "x"}).status_code == 404
    assert admin.get(f"{add_page(session)}?after={known}").status_code == 404
