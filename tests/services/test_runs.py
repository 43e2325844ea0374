"""Stop and retry, called through the services."""

from __future__ import annotations

from typing import Any

import pytest

from chat.errors import ServiceError
from chat.models import ChatMessage, MessageRevision, Session, SessionRun, User
from chat.services.messages.sending import send_message
from chat.services.runs.compaction import compact
from chat.services.runs.control import cancel, retry
from chat.services.sessions.lifecycle import create_session
from tests.support.filled import ANSWER, CUT, DONE, ERROR, HI, NOTE, START, THOUGHT, TOOL, fill, live

pytestmark = pytest.mark.django_db
USER = HI


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana)


@pytest.mark.parametrize(
    ("kept", "withdrawn"),
    [
        ([START, USER], [ERROR, DONE]),
        ([START, USER], [ANSWER, DONE]),
        ([START, USER, ANSWER, TOOL], [ANSWER, DONE]),
        ([START, USER, TOOL], [TOOL, ERROR, DONE]),
        ([START, USER, CUT], [DONE]),
        ([START, USER, CUT, NOTE], [ANSWER, DONE]),
        ([START, USER, USER], [ERROR, DONE]),
    ],
)
def test_retry_continues_after_the_last_kept_row(
    session: Session, ana: User, kept: list[dict[str, Any]], withdrawn: list[dict[str, Any]]
) -> None:
    """RUN-12, MSG-11: the rows from the retried one on are withdrawn and kept on record, and their turn is open
    again."""
    rows = fill(session, *kept, *withdrawn)
    retry(session=session, author=ana, message_id=rows[len(kept)].pk)
    assert live(session) == rows[: len(kept)]
    assert MessageRevision.objects.filter(kind="retry", user=ana).count() == len(withdrawn)
    run = SessionRun.objects.get(pk=session.pk)
    assert (run.state, run.turn_id, run.wanted) == ("running", "t_1", 1)


@pytest.mark.parametrize(
    ("kept", "withdrawn"),
    [([], [START, USER]), ([START, USER, ANSWER], [DONE]), ([START, USER, ERROR], [DONE])],
)
def test_retry_needs_something_to_answer(
    session: Session, ana: User, kept: list[dict[str, Any]], withdrawn: list[dict[str, Any]]
) -> None:
    """RUN-12: a retry after a finished answer or an error, or without a message before it, is refused, and nothing is
    withdrawn."""
    rows = fill(session, *kept, *withdrawn)
    with pytest.raises(ServiceError) as refused:
        retry(session=session, author=ana, message_id=rows[len(kept)].pk)
    assert refused.value.code == "nothing_to_retry"
    assert ChatMessage.objects.filter(session=session, sequence__isnull=False).count() == len(rows)


OUT = {"include_in_context": False}


@pytest.mark.parametrize(
    ("rows", "at", "code"),
    [
        ([START, {**HI, **OUT}, ANSWER, DONE], 2, "nothing_to_retry"),
        ([START, {**HI, **OUT}, {**TOOL, **OUT}, ANSWER, DONE], 3, "nothing_to_retry"),
        ([START, {**HI, **OUT}, HI, ANSWER, DONE], 3, ""),
        ([START, HI, {**TOOL, **OUT}, ANSWER, DONE], 3, ""),
    ],
)
def test_excluded_message_is_not_answered(
    session: Session, ana: User, rows: list[dict[str, Any]], at: int, code: str
) -> None:
    """RUN-12, MSG-09: a retry is refused if all messages that it would answer are excluded, because the model would
    continue from another one."""
    made = fill(session, *rows)
    try:
        retry(session=session, author=ana, message_id=made[at].pk)
        refused = ""
    except ServiceError as error:
        refused = error.code
    assert refused == code
    assert len(live(session)) == (len(rows) if code else at)


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("busy", lambda session: SessionRun.objects.filter(pk=session.pk).update(state="running", turn_id="t_9")),
        ("archived", lambda session: Session.objects.filter(pk=session.pk).update(status="archived")),
        ("no_such_message", lambda session: ChatMessage.objects.filter(session=session, sequence=3).delete()),
    ],
)
def test_retry_is_refused(session: Session, ana: User, code: str, change: Any) -> None:
    """RUN-12: a retry is refused while the agent works, in an archived session, and from a removed row."""
    row = fill(session, START, USER, ERROR, DONE)[2]
    change(session)
    with pytest.raises(ServiceError) as refused:
        retry(session=session, author=ana, message_id=row.pk)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"state": "running"}, "The agent is working."),
        ({"state": "waiting", "delegating": True}, "The agent is working."),
        ({"state": "waiting"}, "The agent is waiting for an answer."),
    ],
)
def test_refusal_says_what_the_turn_does(session: Session, ana: User, columns: dict[str, Any], words: str) -> None:
    """RUN-12, UI-12: the refusal says whether the agent works or waits for an answer; a waiting turn does not end by
    itself."""
    row = fill(session, START, USER, ERROR, DONE)[2]
    SessionRun.objects.filter(pk=session.pk).update(turn_id="t_9", **columns)
    with pytest.raises(ServiceError, match=words):
        retry(session=session, author=ana, message_id=row.pk)
    with pytest.raises(ServiceError, match=words):
        compact(session=session, author=ana)


SPOKEN = [{**row, "response_id": "r_1"} for row in (THOUGHT, ANSWER, TOOL, {**TOOL, "tool_call_id": "c2"})]


@pytest.mark.parametrize(
    ("rows", "at", "kept"),
    [
        ([START, USER, ANSWER, DONE], 1, 2),
        ([START, USER, DONE], 1, 2),
        ([START, USER, USER, ANSWER, DONE], 1, 3),
        ([START, USER, *SPOKEN, ANSWER, DONE], 5, 2),
        ([START, USER, *SPOKEN, ANSWER, DONE], 3, 2),
        ([START, USER, *SPOKEN, ANSWER, DONE], 2, 2),
        ([START, USER, *SPOKEN, {**ANSWER, "response_id": "r_2"}, DONE], 6, 6),
        ([START, USER, CUT, NOTE, ANSWER, DONE], 3, 4),
        ([START, USER, CUT, ERROR, DONE], 3, 3),
        ([START, USER, ANSWER, DONE, START, USER, ANSWER, DONE], 1, 2),
        ([START, USER, CUT, DONE], 3, 3),
    ],
)
def test_retry_from_a_message_is_as_a_person_means_it(
    session: Session, ana: User, rows: list[dict[str, Any]], at: int, kept: int
) -> None:
    """RUN-12: a retry from a user's message keeps and answers it.

    A retry from the agent's message withdraws the whole response.
    """
    made = fill(session, *rows)
    retry(session=session, author=ana, message_id=made[at].pk)
    assert live(session) == made[:kept]
    assert SessionRun.objects.get(pk=session.pk).state == "running"


def test_retry_of_a_long_session_costs_few_queries(
    session: Session, ana: User, django_assert_max_num_queries: Any
) -> None:
    """RUN-12: a thousand rows are withdrawn in a few queries, and the message before them shows that there are two
    attempts."""
    rows = fill(session, START, USER, *[ANSWER] * 1000, DONE)
    with django_assert_max_num_queries(40):
        retry(session=session, author=ana, message_id=rows[1].pk)
    assert len(live(session)) == 2
    assert Session.objects.get().revision == 2005


def test_stop_of_an_idle_session_is_harmless(session: Session, ana: User) -> None:
    """RUN-07: stopping an idle session changes nothing."""
    assert not cancel(session=session, author=ana)
    assert SessionRun.objects.get(pk=session.pk).state == "idle"


def test_each_stop_holds_the_messages_queued_so_far(session: Session, ana: User, bo: User) -> None:
    """RUN-06, RUN-07: a second stop while the turn ends also holds the messages that were sent in the meantime."""
    send_message(session=session, author=ana, text="Go")
    held = []
    for text in ("First", "Second"):
        send_message(session=session, author=bo, text=text)
        assert cancel(session=session, author=ana)
        held.append([row.text for row in ChatMessage.objects.queued(session.pk) if row.held])
    assert held == [["First"], ["First", "Second"]]


def test_stop_is_a_state(session: Session, ana: User) -> None:
    """RUN-07: a stop is committed, so a lost wakeup only delays it, and a repeated stop has no effect."""
    SessionRun.objects.filter(pk=session.pk).update(state="running", turn_id="t_1")
    assert cancel(session=session, author=ana)
    assert cancel(session=session, author=ana)
    assert SessionRun.objects.get(pk=session.pk).state == "cancelling"
