"""How the turn of a sent message ended, for clients that wait for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from chat.access import session_for
from chat.models import ASKING, ChatMessage, MessageStatus, MessageType, RunState, SessionRun, User
from chat.queries import messages
from chat.queries.messages import Page


class Outcome(StrEnum):
    """What became of a message's turn; the first two are not final.

    `held`: a stop has put the message on hold until a person sends it. `waiting`: the agent waits for a person.
    `withdrawn`: the message was taken back, removed or retried away.
    """

    QUEUED = "queued"
    RUNNING = "running"
    HELD = "held"
    WAITING = "waiting"
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"

    @property
    def is_at_rest(self) -> bool:
        return self not in (Outcome.QUEUED, Outcome.RUNNING)


OF_MARKER = {
    MessageStatus.COMPLETE: Outcome.COMPLETED,
    MessageStatus.INTERRUPTED: Outcome.INTERRUPTED,
    MessageStatus.FAILED: Outcome.FAILED,
}


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """`turn_id` is "" and `sequence` None while the message is queued or held."""

    outcome: Outcome
    turn_id: str = ""
    sequence: int | None = None


def outcome_of(user: User, session_id: str, message_id: str) -> TurnOutcome:
    """Read how far the turn of a sent message is, through the access gate. Raises NoSuchSession."""
    session_for(user, session_id)
    return read_outcome(session_id, message_id)


def read_outcome(session_id: str, message_id: str) -> TurnOutcome:
    """Read how far the turn of a sent message is.

    The run is read before the end of the turn: a turn that ends in between is found ended.
    """
    row = ChatMessage.objects.filter(session=session_id, pk=message_id).first()
    if row is None or row.removed_at is not None:
        return TurnOutcome(Outcome.WITHDRAWN)
    if row.status == MessageStatus.QUEUED:
        return TurnOutcome(Outcome.HELD if row.held else Outcome.QUEUED)
    run = SessionRun.objects.get(pk=session_id)
    ends = ChatMessage.objects.in_conversation(session_id).filter(turn_id=row.turn_id, type=MessageType.TURN_DONE)
    status = ends.order_by("-sequence").values_list("status", flat=True).first()
    outcome = _outcome(run, row.turn_id, status)
    if outcome is Outcome.RUNNING and run.state == RunState.RUNNING and _is_asking(run):
        outcome = Outcome.WAITING
    return TurnOutcome(outcome, row.turn_id, row.sequence)


def _outcome(run: SessionRun, turn_id: str, status: str | None) -> Outcome:
    if run.turn_id == turn_id:
        is_asking = run.state == RunState.WAITING and not run.delegating
        return Outcome.WAITING if is_asking else Outcome.RUNNING
    # The marker of the end may have been removed: the turn is over all the same.
    return OF_MARKER.get(MessageStatus(status), Outcome.COMPLETED) if status else Outcome.COMPLETED


def _is_asking(run: SessionRun) -> bool:
    """Whether a running call of the turn waits for people."""
    return ChatMessage.objects.filter(ASKING, session=run.pk, turn_id=run.turn_id).exists()


def messages_of_turn(user: User, session_id: str, turn_id: str, chars: int) -> Page:
    """Read the messages of a turn in order, the first page of them. Raises NoSuchSession."""
    session, _role = session_for(user, session_id)
    return messages.page_after(session, 0, limit=200, chars=chars, turn_id=turn_id)
