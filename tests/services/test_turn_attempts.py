"""Attempts that a retry replaces: the preview of a retry, and restoring, called through the services."""

from __future__ import annotations

from typing import Any

import pytest

from chat.errors import ServiceError
from chat.models import ChatMessage, MessageRevision, Session, SessionRun, User
from chat.services.messages.editing import edit, remove, restore
from chat.services.messages.sending import send_message
from chat.services.runs.attempts import attempts_of, restore_attempt, switch_attempt
from chat.services.runs.control import retry, run_tools
from chat.services.sessions.lifecycle import create_session
from chat.services.transaction import SessionTransaction
from tests.support.filled import ANSWER, DONE, ERROR, HI, START, THOUGHT, TOOL, Fields, fill, live, places
from tests.support.protocol import check_context

pytestmark = pytest.mark.django_db
FIRST, SECOND = {**ANSWER, "response_id": "r_1"}, {**ANSWER, "response_id": "r_2"}
CALL = {**TOOL, "response_id": "r_1"}


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana)


def come_to_rest(session: Session, *rows: Fields) -> list[ChatMessage]:
    """End the open turn with these rows, like a run."""
    run = SessionRun.objects.get(pk=session.pk)
    SessionRun.objects.filter(pk=session.pk).update(state="idle", turn_id="", done=run.wanted)
    opened = SessionTransaction.lock(session.pk)
    made = [ChatMessage(turn_id=run.turn_id, **row) for row in (*rows, DONE)]
    for row in made:
        opened.insert("message_updated", row)
    opened.save()
    return made


def refusal(call: Any, **about: Any) -> ServiceError:
    with pytest.raises(ServiceError) as refused:
        call(**about)
    return refused.value


@pytest.mark.parametrize(
    ("rows", "at", "expected"),
    [
        ([START, HI, FIRST, DONE], 2, (1, 0, True)),
        ([START, HI, FIRST, DONE], 1, (1, 0, True)),
        ([START, HI, CALL, SECOND, DONE], 1, (2, 0, True)),
        ([START, HI, CALL, SECOND, DONE], 3, (1, 0, True)),
        ([START, HI, CALL, SECOND, DONE], 2, (2, 0, False)),
        ([START, HI, {**THOUGHT, "response_id": "r_1"}, FIRST, ERROR, DONE], 3, (3, 0, True)),
        ([START, HI, FIRST, DONE, START, {**HI, "sender": "Bo"}, HI, SECOND, DONE], 2, (4, 2, False)),
    ],
)
def test_retry_preview_counts_what_it_withdraws(
    session: Session, ana: User, rows: list[Fields], at: int, expected: Any
) -> None:
    """RUN-12: the preview has the numbers of messages and users, and whether only the last answer goes.

    It changes nothing.
    """
    row = fill(session, *rows)[at]
    about: dict[str, Any] = {"session": session, "author": ana, "message_id": row.pk}
    found = retry(**about, preview=True)
    assert (found.messages, found.people, found.last_answer) == expected
    assert (found.attempt, len(live(session))) == ("", len(rows))
    if not found.last_answer:
        refused = refusal(retry, **about, at_most=found.messages - 1)
        assert (refused.code, refused.details["messages"], refused.details["people"]) == ("confirm", *expected[:2])
        assert (
            refused.details["after"]
            == live(session)[len(rows) - expected[0] - rows[at + 1 :].count(START) - rows[at:].count(DONE) - 1].pk
        )
        assert not MessageRevision.objects.exists()
    done = retry(**about, at_most=0 if found.last_answer else found.messages)
    assert (done.messages, done.attempt[:2]) == (expected[0], "v_")


def test_attempt_is_restored_exactly(session: Session, ana: User) -> None:
    """RUN-12: ids, places and texts are restored, and the replaced messages become an attempt."""
    before = fill(session, START, HI, CALL, SECOND, DONE, START, {**HI, "text": "And?"}, ANSWER, DONE)
    contents = [(row.pk, row.sequence, row.text, row.result, row.status) for row in before]
    first = retry(session=session, author=ana, message_id=before[1].pk)
    between = [*live(session), *come_to_rest(session, {**ANSWER, "text": "Otherwise"})]
    second = restore_attempt(session=session, author=ana, attempt=first.attempt)
    now = live(session)
    assert [(row.pk, row.sequence, row.text, row.result, row.status) for row in now] == contents
    assert (second.messages, second.people, second.last_answer) == (1, 0, True)
    assert Session.objects.get().revision == max(row.revision for row in now)
    assert SessionRun.objects.get(pk=session.pk).state == "idle"
    third = restore_attempt(session=session, author=ana, attempt=second.attempt)
    assert live(session) == between
    restore_attempt(session=session, author=ana, attempt=third.attempt)
    assert live(session) == before
    assert refusal(restore_attempt, session=session, author=ana, attempt=first.attempt).code == "no_such_attempt"
    check_context(live(session))


def said(session: Session) -> tuple[str, bool, str]:
    """Return a session's first text, whether it is marked as edited, and the answer to it."""
    rows = live(session)
    return rows[1].text, rows[1].edited_at is not None, rows[2].text


@pytest.mark.both_databases
def test_each_answer_is_shown_with_the_text_that_it_answers(session: Session, ana: User, bo: User) -> None:
    """RUN-12: any editor switches between attempts. A text that was edited without a new answer stays."""
    row = fill(session, START, {**HI, "user": ana}, {**ANSWER, "text": "One"}, DONE)[1]
    about: dict[str, Any] = {"session": session, "message_id": row.pk}
    retry(**about, author=ana)
    come_to_rest(session, {**ANSWER, "text": "Two"})
    edit(**about, author=ana, text="Hello")
    done = retry(**about, author=ana, edited=True)
    come_to_rest(session, {**ANSWER, "text": "Three"})
    for number, author, shown in (
        (2, bo, (HI["text"], False, "Two")),
        (3, ana, ("Hello", True, "Three")),
        (1, ana, (HI["text"], False, "One")),
        (3, bo, ("Hello", True, "Three")),
    ):
        switch_attempt(**about, author=author, number=number)
        assert said(session) == shown
    edit(**about, author=ana, text="Hello!")
    switch_attempt(**about, author=ana, number=1)
    assert said(session) == (HI["text"], False, "One")
    switch_attempt(**about, author=ana, number=3)
    assert said(session) == ("Hello!", True, "Three")
    assert done.attempt
    check_context(live(session))


@pytest.mark.parametrize("editor", ["none", "other"])
def test_only_an_edit_of_who_retries_belongs_to_the_retry(session: Session, ana: User, bo: User, editor: str) -> None:
    row = fill(session, START, {**HI, "user": bo}, {**ANSWER, "text": "One"}, DONE)[1]
    about: dict[str, Any] = {"session": session, "message_id": row.pk}
    if editor == "other":
        edit(**about, author=bo, text="Hello")
    text = live(session)[1].text
    done = retry(**about, author=ana, edited=True)
    come_to_rest(session, {**ANSWER, "text": "Two"})
    restore_attempt(session=session, author=ana, attempt=done.attempt)
    assert said(session) == (text, editor == "other", "One")


def test_context_is_as_large_as_it_was(session: Session, ana: User) -> None:
    """RUN-04: the context size is that of the last response that is shown."""
    rows = fill(session, START, HI, {**FIRST, "input_tokens": 900}, DONE)
    Session.objects.update(context_used=900)
    first = retry(session=session, author=ana, message_id=rows[2].pk)
    come_to_rest(session, {**ANSWER, "input_tokens": 40})
    Session.objects.update(context_used=40)
    second = restore_attempt(session=session, author=ana, attempt=first.attempt)
    assert Session.objects.get().context_used == 900
    restore_attempt(session=session, author=ana, attempt=second.attempt)
    assert Session.objects.get().context_used == 40


def test_undo_leaves_the_queue_alone(session: Session, ana: User, bo: User) -> None:
    """RUN-12, RUN-06: messages that were queued during the new answer stay in the queue when the attempt is
    restored."""
    rows = fill(session, START, HI, FIRST, DONE)
    done = retry(session=session, author=ana, message_id=rows[2].pk)
    waiting = send_message(session=session, author=bo, text="Wait")
    come_to_rest(session)
    assert restore_attempt(session=session, author=ana, attempt=done.attempt).messages == 0
    assert live(session) == rows
    assert [row.pk for row in ChatMessage.objects.queued(session.pk)] == [waiting.id]


def test_message_removed_by_itself_keeps_its_place(session: Session, ana: User) -> None:
    """RUN-12, MSG-11: a message removed before or after a retry keeps its place, and so does an attempt whose preceding
    message is gone."""
    rows = fill(session, START, HI, {**HI, "text": "And"}, FIRST, {**ERROR, "text": "Oh"}, DONE)
    remove(session=session, author=ana, message_id=rows[4].pk)
    done = retry(session=session, author=ana, message_id=rows[3].pk)
    come_to_rest(session, {**ANSWER, "text": "Otherwise"})
    remove(session=session, author=ana, message_id=rows[2].pk)
    restore_attempt(session=session, author=ana, attempt=done.attempt)
    assert live(session) == [rows[0], rows[1], rows[3], rows[5]]
    for row in (rows[2], rows[4]):
        restore(session=session, author=ana, message_id=row.pk)
    assert live(session) == rows
    assert places(session) == [(number, row.pk) for number, row in enumerate(rows, 1)]


def test_attempt_within_another_waits_for_it(session: Session, ana: User) -> None:
    """RUN-12: an attempt that follows a withdrawn message can be restored only after that message."""
    rows = fill(session, START, HI, FIRST, DONE, START, {**HI, "text": "And?"}, SECOND, DONE)
    inner = retry(session=session, author=ana, message_id=rows[6].pk)
    come_to_rest(session, {**ANSWER, "text": "Otherwise"})
    outer = retry(session=session, author=ana, message_id=rows[1].pk)
    come_to_rest(session, {**ANSWER, "text": "Again"})
    about: dict[str, Any] = {"session": session, "author": ana}
    assert refusal(restore_attempt, **about, attempt=inner.attempt).code == "replaced"
    listed = [(each.id, each.after, each.messages, each.people, each.user) for each in attempts_of(session)]
    assert listed == [(outer.attempt, rows[1].pk, 3, 1, ana), (inner.attempt, rows[5].pk, 1, 0, ana)]
    restore_attempt(**about, attempt=outer.attempt)
    restore_attempt(**about, attempt=inner.attempt)
    assert live(session) == rows


def test_restoring_asks_before_it_removes_messages_of_users(session: Session, ana: User, bo: User) -> None:
    """RUN-12: restoring needs a confirmation if a newer turn follows the answer that would be removed."""
    rows = fill(session, START, HI, FIRST, DONE)
    about: dict[str, Any] = {"session": session, "author": ana}
    about["attempt"] = retry(session=session, author=ana, message_id=rows[2].pk).attempt
    SessionRun.objects.filter(pk=session.pk).update(state="cancelling")
    assert refusal(restore_attempt, **about).code == "busy"
    come_to_rest(session, {**ANSWER, "text": "Otherwise"})
    send_message(session=session, author=bo, text="Thanks")
    come_to_rest(session, {**ANSWER, "text": "You are welcome"})
    refused = refusal(restore_attempt, **about, at_most=0)
    assert (refused.code, refused.details) == (
        "confirm",
        {"messages": 3, "people": 1, "others": 1, "after": rows[1].pk},
    )
    assert restore_attempt(**about, preview=True).people == 1
    Session.objects.update(status="archived")
    assert refusal(restore_attempt, **about).code == "archived"
    Session.objects.update(status="active")
    assert restore_attempt(**about, at_most=3).messages == 3
    assert live(session) == rows


@pytest.mark.parametrize("count", [1, 1000])
def test_long_attempt_is_restored_in_few_queries(
    session: Session, ana: User, count: int, django_assert_max_num_queries: Any
) -> None:
    """RUN-12: a thousand rows are restored in a few queries, with revisions and places without gaps."""
    rows = fill(session, START, HI, *[ANSWER] * count, DONE)
    done = retry(session=session, author=ana, message_id=rows[1].pk)
    come_to_rest(session)
    with django_assert_max_num_queries(40):
        restore_attempt(session=session, author=ana, attempt=done.attempt)
    now = live(session)
    assert [(row.sequence, row.pk) for row in now] == [(number, row.pk) for number, row in enumerate(rows, 1)]
    revisions = [row.revision for row in now[2:]]
    assert revisions == list(range(revisions[0], revisions[0] + count + 1))


def test_tools_run_again_and_their_results_are_kept(session: Session, ana: User) -> None:
    """RUN-12: all calls of a response run again except excluded ones, and the old results can be restored."""
    words = {**ANSWER, "response_id": "r_1", "input_tokens": 5}
    calls = [{**CALL, "tool_call_id": name, "arguments": {"n": 1}, "duration_ms": 5} for name in ("a", "b", "c")]
    calls[1]["include_in_context"] = False
    rows = fill(session, START, HI, words, *calls, SECOND, DONE)
    SessionRun.objects.filter(pk=session.pk).update(wanted=1, done=1)
    done = run_tools(session=session, author=ana, message_id=rows[2].pk, at_most=0)
    now = live(session)
    assert now[:3] == rows[:3]
    shown = [(row.tool_call_id, row.status, row.result, row.duration_ms, row.arguments) for row in now[3:]]
    expected = [("a", "pending", "", None), ("b", "complete", "2", 5), ("c", "pending", "", None)]
    assert shown == [(*each, {"n": 1}) for each in expected]
    assert {row.response_id for row in now[2:]} == {"r_1"}
    assert not {row.pk for row in now} & {row.pk for row in rows[3:]}
    run = SessionRun.objects.get(pk=session.pk)
    assert (run.state, run.turn_id, run.wanted, done.messages) == ("running", "t_1", 2, 4)
    ChatMessage.objects.filter(status="pending").update(status="complete", result="3")
    come_to_rest(session, {**ANSWER, "text": "Three"})
    restore_attempt(session=session, author=ana, attempt=done.attempt)
    assert live(session) == rows


@pytest.mark.parametrize(
    ("rows", "at", "code"),
    [
        ([START, HI, FIRST, DONE], 2, "no_tools"),
        ([START, HI, {**CALL, "include_in_context": False}, DONE], 2, "no_tools"),
        ([START, HI, CALL, DONE], 3, "no_tools"),
        ([START, HI, CALL, SECOND, DONE, START, HI, FIRST, DONE], 2, "confirm"),
    ],
)
def test_tools_are_not_run_where_there_are_none(
    session: Session, ana: User, rows: list[Fields], at: int, code: str
) -> None:
    """RUN-12: a refused request to run tools again withdraws nothing. Later messages of users need a confirmation."""
    row = fill(session, *rows)[at]
    assert refusal(run_tools, session=session, author=ana, message_id=row.pk, at_most=0).code == code
    assert len(live(session)) == len(rows)


def counted(session: Session, row: ChatMessage) -> tuple[int, int]:
    found = live(session)[(row.sequence or 0) - 1]
    assert found.pk == row.pk
    return found.attempt_count, found.attempt_current


def test_attempts_are_counted_where_they_follow(session: Session, ana: User) -> None:
    """RUN-12: the row before the attempts has their number and the shown one, and each attempt keeps its number."""
    rows = fill(session, START, HI, FIRST, DONE)
    about: dict[str, Any] = {"session": session, "author": ana, "message_id": rows[1].pk}
    assert counted(session, rows[1]) == (0, 0)
    assert refusal(switch_attempt, **about, number=0).code == "no_such_attempt"
    for count, text in ((2, "Second"), (3, "Third")):
        retry(**about)
        assert counted(session, rows[1]) == (count, count)
        come_to_rest(session, {**ANSWER, "text": text})
    said = {}
    for number in (1, 2, 3, 2):
        switch_attempt(**about, number=number)
        assert counted(session, rows[1]) == (3, number)
        said[number] = live(session)[2].text
        assert sorted([number, *(each.number or 0 for each in attempts_of(session))]) == [1, 2, 3]
    assert said == {1: ANSWER["text"], 2: "Second", 3: "Third"}
    revision = Session.objects.get().revision
    assert switch_attempt(**about, number=2).messages == 0
    assert Session.objects.get().revision == revision
    assert refusal(switch_attempt, **about, number=4).code == "no_such_attempt"
    assert refusal(switch_attempt, **{**about, "message_id": "m_none"}, number=1).code == "no_such_message"
    check_context(live(session))


def test_failed_attempts_are_not_counted(session: Session, ana: User) -> None:
    """RUN-12: a retry of an error does not count as a second answer, and can still be restored."""
    rows = fill(session, START, HI, ERROR, DONE)
    done = retry(session=session, author=ana, message_id=rows[2].pk)
    come_to_rest(session, ANSWER)
    assert counted(session, rows[1]) == (0, 0)
    assert [(each.id, each.number) for each in attempts_of(session)] == [(done.attempt, None)]
    restore_attempt(session=session, author=ana, attempt=done.attempt)
    assert counted(session, rows[1]) == (2, 1)


def test_switch_away_from_a_conversation_asks(session: Session, ana: User, bo: User) -> None:
    """RUN-12: messages that follow the answer are withdrawn and restored with it, after a confirmation."""
    rows = fill(session, START, HI, FIRST, DONE)
    about: dict[str, Any] = {"session": session, "author": ana, "message_id": rows[1].pk}
    retry(**about)
    come_to_rest(session, {**ANSWER, "text": "Otherwise"})
    send_message(session=session, author=bo, text="And?")
    come_to_rest(session, {**ANSWER, "text": "So"})
    long = live(session)
    assert refusal(switch_attempt, **about, number=1, at_most=0).details["messages"] == 3
    switch_attempt(**about, number=1, at_most=3)
    assert live(session) == rows
    switch_attempt(**about, number=2, at_most=0)
    assert live(session) == long
