"""The outcome of a sent message's turn, for clients that wait for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from chat.access import session_for
from chat.models import ASKING, ChatMessage, MessageStatus, MessageType, RunState, SessionRun, User
from chat.queries import messages
from chat.queries.cast import REPEATS
from chat.queries.messages import Page


class Outcome(StrEnum):
    """The outcome of a message's turn. The first two are not final.

    HELD: a stop has put the message on hold until a user sends it. WAITING: the agent waits for a user. COMPLETED: the
    turn has ended, or no agent answers the message. WITHDRAWN: the message was withdrawn, removed or replaced by a
    retry.
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
    """An outcome. `turn_id` is "" and `sequence` None while the message is queued or held.

    `turn_id` is also "" if the message is for no agent. Otherwise, it is the message's turn or, if that has failed and
    its agent has answered again, the later turn.
    """

    outcome: Outcome
    turn_id: str = ""
    sequence: int | None = None


def outcome_of(user: User, session_id: str, message_id: str) -> TurnOutcome:
    """Return the outcome so far of a sent message's turn, through the access gate. Raise NoSuchSession."""
    session_for(user, session_id)
    return read_outcome(session_id, message_id)


def read_outcome(session_id: str, message_id: str) -> TurnOutcome:
    """Return the outcome so far of a sent message's turn.

    The run is read before the end of the turn, so that a turn that ends in between counts as ended.
    """
    row = ChatMessage.objects.filter(session=session_id, pk=message_id).first()
    if row is None or row.removed_at is not None:
        return TurnOutcome(Outcome.WITHDRAWN)
    if row.status == MessageStatus.QUEUED:
        return TurnOutcome(Outcome.HELD if row.held else Outcome.QUEUED)
    if not row.turn_id:  # the message is for no agent, so there is no turn to wait for
        return TurnOutcome(Outcome.COMPLETED, sequence=row.sequence)
    run = SessionRun.objects.get(pk=session_id)
    turn_id, place = row.turn_id, row.sequence or 0
    while (outcome := _outcome_of_turn(run, turn_id)) is Outcome.FAILED and (
        later := _last_repeat(run, turn_id, place)
    ):
        turn_id, place = later
    return TurnOutcome(outcome, turn_id, row.sequence)


def _outcome_of_turn(run: SessionRun, turn_id: str) -> Outcome:
    ends = ChatMessage.objects.in_conversation(run.pk).filter(turn_id=turn_id, type=MessageType.TURN_DONE)
    status = ends.order_by("-sequence").values_list("status", flat=True).first()
    outcome = _outcome(run, turn_id, status)
    if outcome is Outcome.RUNNING and run.state == RunState.RUNNING and _is_asking(run):
        return Outcome.WAITING
    return outcome


def _last_repeat(run: SessionRun, turn_id: str, after: int) -> tuple[str, int] | None:
    """Return the last turn in which the agent of a failed turn answers again, as the id and sequence of its start.

    Only turns after a sequence count, so that an imported session cannot contain a circle.
    """
    starts = ChatMessage.objects.in_conversation(run.pk).filter(type=MessageType.TURN_START, sequence__gt=after)
    start = starts.filter(**{f"arguments__{REPEATS}": turn_id}).order_by("-sequence").first()
    return (start.turn_id, start.sequence or 0) if start else None


def _outcome(run: SessionRun, turn_id: str, status: str | None) -> Outcome:
    if run.turn_id == turn_id:
        is_asking = run.state == RunState.WAITING and (not run.delegating or _subsession_asks(run))
        return Outcome.WAITING if is_asking else Outcome.RUNNING
    # A user may have removed the marker of the end. The turn has ended all the same.
    return OF_MARKER.get(MessageStatus(status), Outcome.COMPLETED) if status else Outcome.COMPLETED


def _is_asking(run: SessionRun) -> bool:
    """Return whether a running call of the turn waits for people."""
    return ChatMessage.objects.filter(ASKING, session=run.pk, turn_id=run.turn_id).exists()


def _subsession_asks(run: SessionRun) -> bool:
    """Return whether another agent that works on a call of the turn waits for people."""
    calls = ChatMessage.objects.filter(session=run.pk, turn_id=run.turn_id, status=MessageStatus.WAITING)
    return calls.filter(subsession__waits__in=("approval", "answer")).exists()


def messages_of_turn(user: User, session_id: str, turn_id: str, chars: int) -> Page:
    """Read the messages of a turn, in order, as one page. Raise NoSuchSession."""
    session, _role = session_for(user, session_id)
    return messages.page_after(session, 0, limit=200, chars=chars, turn_id=turn_id)
