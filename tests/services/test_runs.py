"""Stop and retry, straight through the services."""

from __future__ import annotations

from typing import Any

import pytest

from chat.models import ChatMessage, MessageRevision, Session, SessionRun, User
from chat.services.errors import Refused
from chat.services.runs import cancel, retry
from chat.services.sessions import create_session

pytestmark = pytest.mark.django_db
START, USER, DONE = {"type": "turn_start"}, {"role": "user", "text": "Hi"}, {"type": "turn_done"}
ANSWER, CUT = {"role": "assistant", "text": "So"}, {"role": "assistant", "text": "S", "status": "interrupted"}
TOOL = {"type": "tool_group", "role": "assistant", "tool_call_id": "c1", "result": "2"}
ERROR = {"type": "error", "role": "assistant", "status": "failed"}
NOTE = {"role": "system", "text": "Go on."}


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana)


def fill(session: Session, *rows: dict[str, Any], turn_id: str = "t_1") -> list[ChatMessage]:
    return [
        ChatMessage.objects.create(session=session, sequence=number, run_id=turn_id, **row)
        for number, row in enumerate(rows, start=1)
    ]


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
        ([START, USER], [USER, ERROR, DONE]),
    ],
)
def test_retry_goes_on_after_the_last_kept_row(
    session: Session, ana: User, kept: list[dict[str, Any]], withdrawn: list[dict[str, Any]]
) -> None:
    """RUN-12, MSG-11: rows from N on are out of view and on record; their turn is open again."""
    rows = fill(session, *kept, *withdrawn)
    retry(session=session, author=ana, message_id=rows[len(kept)].pk)
    live = ChatMessage.objects.filter(session=session, sequence__isnull=False).order_by("sequence")
    assert list(live) == rows[: len(kept)]
    assert MessageRevision.objects.filter(kind="remove", user=ana).count() == len(withdrawn)
    run = SessionRun.objects.get(pk=session.pk)
    assert (run.state, run.turn_id, run.wanted) == ("running", "t_1", 1)


@pytest.mark.parametrize(
    ("kept", "withdrawn"),
    [([], [START, USER]), ([START], [USER, ERROR]), ([START, USER, ANSWER], [DONE]), ([START, USER, ERROR], [DONE])],
)
def test_retry_needs_something_to_answer(
    session: Session, ana: User, kept: list[dict[str, Any]], withdrawn: list[dict[str, Any]]
) -> None:
    """RUN-12: a finished answer, an error or nothing at all leads nowhere; nothing is withdrawn."""
    rows = fill(session, *kept, *withdrawn)
    with pytest.raises(Refused) as refused:
        retry(session=session, author=ana, message_id=rows[len(kept)].pk)
    assert refused.value.code == "nothing_to_retry"
    assert ChatMessage.objects.filter(session=session, sequence__isnull=False).count() == len(rows)


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("busy", lambda session: SessionRun.objects.filter(pk=session.pk).update(state="running", turn_id="t_9")),
        ("archived", lambda session: Session.objects.filter(pk=session.pk).update(status="archived")),
        ("no_such_message", lambda session: ChatMessage.objects.filter(session=session, sequence=3).delete()),
    ],
)
def test_retry_is_refused(session: Session, ana: User, code: str, change: Any) -> None:
    """RUN-12: not while the agent works, not in an archived session, not from a row that has gone."""
    row = fill(session, START, USER, ERROR, DONE)[2]
    change(session)
    with pytest.raises(Refused) as refused:
        retry(session=session, author=ana, message_id=row.pk)
    assert refused.value.code == code


def test_stop_of_an_idle_session_is_harmless(session: Session, ana: User) -> None:
    """RUN-07: nothing runs, nothing changes."""
    assert not cancel(session=session, author=ana)
    assert SessionRun.objects.get(pk=session.pk).state == "idle"


def test_stop_is_a_state(session: Session, ana: User) -> None:
    """RUN-07: committed, so that a lost nudge costs time and nothing else; repeating it does no harm."""
    SessionRun.objects.filter(pk=session.pk).update(state="running", turn_id="t_1")
    assert cancel(session=session, author=ana)
    assert cancel(session=session, author=ana)
    assert SessionRun.objects.get(pk=session.pk).state == "cancelling"
