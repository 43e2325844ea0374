"""The schedules of a session, as pages and the API show them."""

from __future__ import annotations

from dataclasses import dataclass

from chat import ids
from chat.errors import NoSuchSchedule
from chat.models import ChatMessage, Schedule, Session
from chat.queries.turn_outcomes import read_outcome


@dataclass(frozen=True, slots=True)
class Listed:
    """A schedule, the outcome of its last run so far, and whether the message of that run is in the conversation."""

    row: Schedule
    outcome: str
    has_message: bool


def schedules_of(session: Session) -> list[Listed]:
    """Return the schedules of a session, the oldest first, without removed ones."""
    rows = list(Schedule.objects.filter(session=session, removed_at=None).select_related("owner"))
    ids = [row.last_message_id for row in rows if row.last_message_id]
    shown = set(ChatMessage.objects.in_conversation(session.pk).filter(pk__in=ids).values_list("pk", flat=True))
    return [Listed(row, outcome_now(row), row.last_message_id in shown) for row in rows]


def schedule_in(session: Session, schedule_id: str) -> Schedule:
    """Return a schedule of a session, for all its users. Raise NoSuchSchedule, also for a removed one."""
    known = Schedule.objects.filter(session=session, pk=schedule_id, removed_at=None).select_related("owner")
    row = known.first() if ids.may_be_one(schedule_id) else None
    if row is None:
        raise NoSuchSchedule
    return row


def outcome_now(row: Schedule) -> str:
    """Return the outcome of the last run so far, which can be `queued`, `held` or `running`; "" if there was no run."""
    if row.last_outcome != Schedule.Outcome.RUNNING:
        return row.last_outcome
    return read_outcome(row.session_id, row.last_message_id).outcome.value
