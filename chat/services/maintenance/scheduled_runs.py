"""Start the runs of schedules that are due, and note how they ended.

Any process may look. The instant is claimed by setting `next_at` from it to the next one, in the transaction that sends
the message, so a message is sent once however many processes look. After an outage, the last missed instant is made up
for, and earlier ones are not.
"""

from __future__ import annotations

import logging
from datetime import datetime
from zoneinfo import ZoneInfoNotFoundError

from django.db import transaction
from django.db.models import Min
from django.utils import timezone

from chat.access import may_schedule
from chat.errors import NoSuchSession, ServiceError
from chat.models import Schedule, Session
from chat.queries.turn_outcomes import Outcome, read_outcome
from chat.recurrence import latest_until, next_after
from chat.services.batches import Deadline
from chat.services.messages.sending import add_message
from chat.services.sessions.schedules import is_queued, record_run
from chat.services.transaction import SessionTransaction

logger = logging.getLogger(__name__)

# Failed runs in a row after which a schedule is paused.
MOST_FAILURES = 5
# Schedules that one look starts; the next one follows at once.
BATCH = 100
# A look without a schedule that is due before.
INTERVAL = 10.0
ENDS = {
    Outcome.COMPLETED: Schedule.Outcome.COMPLETED,
    Outcome.INTERRUPTED: Schedule.Outcome.INTERRUPTED,
    Outcome.FAILED: Schedule.Outcome.FAILED,
    Outcome.WITHDRAWN: Schedule.Outcome.WITHDRAWN,
}


def look(now: datetime | None = None, deadline: Deadline | None = None) -> float:
    """Start what is due and note what has ended. Return in how many seconds to look again."""
    now, deadline = now or timezone.now(), deadline or Deadline()
    settle(deadline)
    count = start_due(now, deadline)
    due = Schedule.objects.filter(next_at__isnull=False).aggregate(first=Min("next_at"))["first"]
    if due is None:
        return INTERVAL
    wait = (due - timezone.now()).total_seconds()
    # What is still due could not be started, unless there is more than one look starts.
    return min(INTERVAL, wait) if wait > 0 else 0.0 if count else INTERVAL


def start_due(now: datetime, deadline: Deadline | None = None) -> int:
    """Start the runs that are due. Return how many messages this process has sent."""
    deadline, count = deadline or Deadline(), 0
    due = Schedule.objects.filter(next_at__lte=now).order_by("next_at").values_list("pk", "session_id")
    for schedule_id, session_id in list(due[:BATCH]):
        if deadline.is_over:
            break
        try:
            count += _start(schedule_id, session_id, now)
        except Exception:  # the next look tries again; the other schedules are started
            logger.exception("Schedule %s could not be started", schedule_id)
    return count


@transaction.atomic
def _start(schedule_id: str, session_id: str, now: datetime) -> bool:
    """Claim the newest instant that is due, and send the message. Return whether it was sent."""
    try:
        tx = SessionTransaction.lock(session_id)
    except NoSuchSession:
        return False
    row = Schedule.objects.select_related("session", "owner").filter(pk=schedule_id, next_at__lte=now).first()
    if row is None or (due := _claim(row, now)) is None or _is_held_up(row, tx.session):
        return False
    key = f"schedule:{row.pk}:{due:%Y%m%dT%H%M%SZ}"
    try:
        sent = add_message(session=tx.session, author=row.owner, text=row.text, key=key, schedule=row)
    except ServiceError as refused:
        _refuse(row, refused, now)
        return False
    record_run(row, sent, now)
    return True


def _claim(row: Schedule, now: datetime) -> datetime | None:
    """Set the next instant, and return the newest one that is due; None if another process has done so."""
    if row.next_at is None:
        return None
    try:
        due, following = latest_until(row.cron, row.zone, row.next_at, now), next_after(row.cron, row.zone, now)
    except (ValueError, ZoneInfoNotFoundError):  # rows written by hand, or a time zone that no longer exists
        _pause(row, Schedule.Pause.INVALID)
        return None
    if Schedule.objects.filter(pk=row.pk, next_at=row.next_at).update(next_at=following) != 1:
        return None
    row.next_at = following
    return due


def _is_held_up(row: Schedule, session: Session) -> bool:
    """Pause a schedule that can run no more. Return whether it did, or its last message is still in the queue."""
    _settle(row)
    reason = row.paused or _obstacle(row, session)
    if reason:
        _pause(row, reason)
    return bool(reason) or is_queued(row)


def settle(deadline: Deadline | None = None) -> None:
    """Note how runs have ended whose end is not known yet."""
    deadline = deadline or Deadline()
    running = Schedule.objects.filter(last_outcome=Schedule.Outcome.RUNNING)
    for schedule_id, session_id in list(running.values_list("pk", "session_id")[: 10 * BATCH]):
        if deadline.is_over:
            break
        try:
            _settle_one(schedule_id, session_id)
        except Exception:  # likewise
            logger.exception("The end of a run of schedule %s could not be noted", schedule_id)


def _settle_one(schedule_id: str, session_id: str) -> None:
    row = Schedule.objects.filter(pk=schedule_id).first()
    if row is None or _ended(row) is None:
        return
    with transaction.atomic():
        try:
            SessionTransaction.lock(session_id)
        except NoSuchSession:
            return
        row = Schedule.objects.filter(pk=schedule_id).first()
        if row is not None:
            _settle(row)


def _settle(row: Schedule) -> None:
    """Note how the last run of a schedule has ended, and pause it after too many failures. Its session is locked."""
    outcome = _ended(row)
    if outcome is None:
        return
    row.last_outcome = outcome
    if outcome == Schedule.Outcome.COMPLETED:
        row.failures = 0
    if outcome == Schedule.Outcome.FAILED:
        _count_failure(row)
    row.save(update_fields=["last_outcome", "failures", "is_on", "paused", "next_at"])


def _ended(row: Schedule) -> Schedule.Outcome | None:
    if row.last_outcome != Schedule.Outcome.RUNNING:
        return None
    return ENDS.get(read_outcome(row.session_id, row.last_message_id).outcome)


def _refuse(row: Schedule, refused: ServiceError, now: datetime) -> None:
    logger.info("Schedule %s was refused: %s", row.pk, refused.code)
    row.last_run_at, row.last_message_id = now, ""
    row.last_outcome, row.last_error = Schedule.Outcome.REFUSED, refused.code[:40]
    _count_failure(row)
    row.save(
        update_fields=[
            *("last_run_at", "last_message_id", "last_outcome", "last_error"),
            *("failures", "is_on", "paused", "next_at"),
        ]
    )


def _count_failure(row: Schedule) -> None:
    row.failures += 1
    if row.failures >= MOST_FAILURES and row.is_on:
        row.is_on, row.paused, row.next_at = False, Schedule.Pause.FAILURES, None


def _obstacle(row: Schedule, session: Session) -> str:
    """Return why a schedule cannot run any more; "" if it can."""
    if session.status == Session.Status.DELETED:
        return Schedule.Pause.DELETED
    if session.status == Session.Status.ARCHIVED:
        return Schedule.Pause.ARCHIVED
    return "" if may_schedule(row.owner, session) else Schedule.Pause.ACCESS


def _pause(row: Schedule, reason: str) -> None:
    logger.info("Schedule %s is paused: %s", row.pk, reason)
    row.is_on, row.paused, row.next_at = False, reason, None
    row.save(update_fields=["is_on", "paused", "next_at"])
