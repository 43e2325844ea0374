"""Histories of messages and system prompts, and removed messages, read from the revisions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.models import ChatMessage, MessageRevision, Session, User
from chat.queries import history
from chat.queries.history import PAGE, History, history_of, history_of_prompt, removed_from, version_of
from chat.services.deletion.users import delete_row
from chat.services.messages.editing import add, edit, edit_tool_call, remove, restore, set_included
from chat.services.messages.sending import send_message, withdraw
from chat.services.runs.control import retry
from chat.services.sessions.lifecycle import create_session, set_system_prompt
from tests.support.filled import ANSWER, DONE, HI, START, TOOL, fill
from tests.support.testing_node import let_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana)


def changes_of(found: History) -> list[tuple[str, str, str, str]]:
    """Return the kind, the user, and the text before and after each change."""
    return [
        (each.kind, each.user.sender if each.user else "", each.before["text"], each.after["text"])
        for each in found.changes
    ]


def queries(call: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as counted:
        call()
    return len(counted)


def fresh(row: ChatMessage) -> ChatMessage:
    return ChatMessage.objects.get(pk=row.pk)


def test_history_lists_the_changes_of_a_message_with_their_users(session: Session, ana: User, bo: User) -> None:
    """MSG-11: the newest change comes first. A change that keeps the text has the same text before and after."""
    row = fill(session, START, HI, {**ANSWER, "text": "Hi"}, DONE)[2]
    edit(session=session, author=ana, message_id=row.pk, text="Hi there")
    set_included(session=session, author=bo, message_id=row.pk, included=False)
    edit(session=session, author=bo, message_id=row.pk, text="Hello")
    found = history_of(fresh(row))
    assert changes_of(found) == [
        ("edit", "Bo", "Hi there", "Hello"),
        ("exclude", "Bo", "Hi there", "Hi there"),
        ("edit", "Ana", "Hi", "Hi there"),
    ]
    assert (found.now, found.first, found.older) == ({"text": "Hello"}, {"text": "Hi"}, None)
    versions = [found.changes[0].made, found.changes[2].made, found.first_version]
    assert [version_of(fresh(row), each) for each in versions] == [{"text": "Hello"}, {"text": "Hi there"}, found.first]
    assert found.newest == history.newest_change(session, row) == found.changes[0].id


def test_history_of_a_tool_call_has_its_arguments_and_results(session: Session, ana: User) -> None:
    """MSG-07, MSG-11: the history has the arguments as readable JSON, and the results."""
    row = fill(session, START, HI, TOOL, ANSWER, DONE)[2]
    edit_tool_call(session=session, author=ana, message_id=row.pk, arguments={"n": 2}, result="4", is_error=False)
    change = history_of(fresh(row)).changes[0]
    assert (change.before, change.after) == (
        {"arguments": "{}", "result": "2"},
        {"arguments": '{\n  "n": 2\n}', "result": "4"},
    )


def test_history_of_an_added_message_begins_with_adding_it(session: Session, ana: User) -> None:
    """MSG-11: the history of an added message begins with the addition, without an earlier text."""
    rows = fill(session, START, HI, DONE)
    row = add(session=session, author=ana, after_id=rows[1].pk, role="assistant", text="So")[0]
    found = history_of(row)
    assert changes_of(found) == [("add", "Ana", "So", "So")]
    assert version_of(row, found.first_version) == found.first == {"text": "So"}


def test_incomplete_records_are_read(session: Session) -> None:
    """MSG-10: incomplete revisions are read, whichever fields are missing."""
    row = fill(session, START, HI, DONE)[1]
    MessageRevision.objects.create(message=row, kind="edit", before={"text": None, "tool": "?"})
    assert changes_of(history_of(row)) == [("edit", "", "", "Hi")]


def test_long_history_is_read_in_pages(session: Session, ana: User) -> None:
    """MSG-11: thirty changes need as many queries as one, and pages neither repeat nor skip changes."""
    row = fill(session, START, HI, DONE)[1]
    edit(session=session, author=ana, message_id=row.pk, text="1")
    once = queries(lambda: history_of(fresh(row)))
    for number in range(2, 31):
        edit(session=session, author=ana, message_id=row.pk, text=str(number))
    assert queries(lambda: history_of(fresh(row))) == once
    page = history_of(fresh(row))
    rest = history_of(fresh(row), page.older)
    assert (len(page.changes), rest.older) == (PAGE, None)
    texts = [(after, before) for _kind, _who, before, after in [*changes_of(page), *changes_of(rest)]]
    assert texts == [(str(number), str(number - 1) if number > 1 else "Hi") for number in range(30, 0, -1)]
    assert version_of(fresh(row), rest.changes[0].made) == {"text": "10"}


def test_page_ends_with_a_change_that_keeps_no_content(session: Session, ana: User) -> None:
    """MSG-11: if a page ends with a change without content, the next page still has the text of that time."""
    row = fill(session, START, HI, DONE)[1]
    edit(session=session, author=ana, message_id=row.pk, text="1")
    for number in range(PAGE):
        set_included(session=session, author=ana, message_id=row.pk, included=number % 2 == 1)
    edit(session=session, author=ana, message_id=row.pk, text="2")
    page = history_of(fresh(row))
    rest = history_of(fresh(row), page.older)
    assert [(each.before["text"], each.after["text"]) for each in rest.changes] == [("1", "1"), ("Hi", "1")]


def test_system_prompt_has_a_history(session: Session, ana: User, bo: User) -> None:
    """UI-11, MSG-11: the history of the system prompt has the users and the earlier texts."""
    first = session.system_prompt
    set_system_prompt(session=session, author=ana, system_prompt="Be brief.")
    set_system_prompt(session=session, author=bo, system_prompt="Be kind.")
    session.refresh_from_db()
    found = history_of_prompt(session)
    assert changes_of(found) == [
        ("system_prompt", "Bo", "Be brief.", "Be kind."),
        ("system_prompt", "Ana", first, "Be brief."),
    ]
    assert history.version_of_prompt(session, found.changes[1].made) == {"text": "Be brief."}
    assert history.version_of_prompt(session, 0) == found.now
    assert history.version_of_prompt(create_session(owner=ana), found.newest) is None


def test_removed_messages_are_listed(session: Session, ana: User, bo: User) -> None:
    """MSG-11: the list has the users and marks messages that a retry replaced; long texts are shortened."""
    rows = fill(session, START, HI, ANSWER, DONE)
    more = fill(session, START, {**HI, "text": "x" * 1000}, ANSWER, DONE, turn_id="t_2")
    retry(session=session, author=bo, message_id=rows[2].pk)
    assert [(row.message.pk, row.user, row.comes_back) for row in removed_from(session)[0]] == [
        (row.pk, bo, False) for row in (more[2], more[1], rows[2])
    ]
    assert removed_from(session)[0][1].excerpt == "x" * history.EXCERPT


def test_messages_that_another_user_removed_from_the_queue_are_listed(session: Session, ana: User, bo: User) -> None:
    """MSG-11, RUN-06: their sender may have been away. Messages that the sender withdrew are back in the composer."""
    let_in(session, bo, "editor")
    send_message(session=session, author=ana, text="Work!")
    own, theirs = [send_message(session=session, author=bo, text="Then this") for _ in range(2)]
    withdraw(session=session, author=bo, message_id=own.id)
    withdraw(session=session, author=ana, message_id=theirs.id)
    rows, _older = removed_from(session)
    assert [(row.message.pk, row.user, row.comes_back, row.was_queued) for row in rows] == [
        (theirs.id, ana, False, True)
    ]
    MessageRevision.objects.filter(message=theirs.id).update(user=None)  # an erased user
    assert [row.message.pk for row in removed_from(session)[0]] == [theirs.id]


def test_message_that_its_sender_withdrew_stays_private_without_the_account(
    session: Session, ana: User, bo: User
) -> None:
    """MSG-11: the deletion of an account clears the sender and the user of the change, but shows nothing to others."""
    let_in(session, bo, "editor")
    send_message(session=session, author=ana, text="Work!")
    own, theirs = [send_message(session=session, author=bo, text="A secret") for _ in range(2)]
    withdraw(session=session, author=bo, message_id=own.id)
    withdraw(session=session, author=ana, message_id=theirs.id)
    delete_row(bo)
    assert [row.message.pk for row in removed_from(session)[0]] == [theirs.id]


def test_restored_messages_are_not_listed(session: Session, ana: User) -> None:
    """Restored messages are not among the removed ones (MSG-11)."""
    rows = fill(session, START, HI, ANSWER, DONE)
    remove(session=session, author=ana, message_id=rows[2].pk)
    assert [row.message for row in removed_from(session)[0]] == [rows[2]]
    restore(session=session, author=ana, message_id=rows[2].pk)
    assert removed_from(session) == ([], None)


def test_long_list_of_removed_messages_is_read_in_pages(session: Session, ana: User) -> None:
    """MSG-11: one query reads a page, however many messages were removed."""
    rows = fill(session, START, *[{**HI, "text": str(number)} for number in range(30)], DONE)
    remove(session=session, author=ana, message_id=rows[1].pk)
    assert queries(lambda: removed_from(session)) == 1
    for row in rows[2:30]:
        remove(session=session, author=ana, message_id=row.pk)
    assert queries(lambda: removed_from(session)) == 1
    page, older = removed_from(session)
    rest, end = removed_from(session, older)
    assert ([row.excerpt for row in [*page, *rest]], end) == ([str(number) for number in range(28, -1, -1)], None)
