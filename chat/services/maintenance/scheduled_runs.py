"""Start the runs of schedules that are due, and record how they ended.

Any process may check for due schedules. It claims an instant by changing `next_at` to the next one in the transaction
that sends the message, so each message is sent once. After an outage, only the last missed instant is run.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import datetime, timedelta
from zoneinfo import ZoneInfoNotFoundError

from django.db import transaction
from django.db.models import Min, Q
from django.utils import timezone

from chat.access import may_schedule
from chat.errors import NoSuchSession, ServiceError
from chat.models import Schedule, Session
from chat.recurrence import latest_until, next_after
from chat.services.batches import NO_DEADLINE, Deadline
from chat.services.messages.sending import send_message
from chat.services.sessions.schedules import count_failure, end_of, is_queued, record_run, settle_last_run
from chat.services.transaction import SessionTransaction

logger = logging.getLogger(__name__)

# The most schedules that one check starts. The next check follows immediately.
BATCH = 100
# Seconds between two checks, unless a schedule is due earlier.
INTERVAL = 10.0
# If a schedule ran or was changed this long after the present, the machine's clock was wrong. The clocks of several
# machines differ by less.
WRONG_CLOCK = timedelta(hours=1)


def check_schedules(now: datetime | None = None, deadline: Deadline = NO_DEADLINE) -> float:
    """Start the runs that are due and record the ends of others. Return the seconds until the next check."""
    now = now or timezone.now()
    settle(deadline)
    bring_forward(now)
    count = start_due(now, deadline)
    due = Schedule.objects.filter(next_at__isnull=False).aggregate(first=Min("next_at"))["first"]
    if due is None:
        return INTERVAL
    wait = (due - timezone.now()).total_seconds()
    # If schedules are still due, either there were more than BATCH, or they could not be started.
    return min(INTERVAL, wait) if wait > 0 else 0.0 if count else INTERVAL


def start_due(now: datetime, deadline: Deadline = NO_DEADLINE) -> int:
    """Start the runs that are due. Return how many messages were sent."""
    count = 0
    due = Schedule.objects.filter(next_at__lte=now).order_by("next_at").values_list("pk", "session_id")
    for schedule_id, session_id in list(due[:BATCH]):
        if deadline.is_over:
            break
        try:
            count += _start(schedule_id, session_id, now)
        except Exception:  # the next check tries again; the other schedules are started
            logger.exception("Could not start schedule %s", schedule_id)
    return count


def bring_forward(now: datetime) -> int:
    """Correct the next instants that were set while the machine's clock was ahead. Return how many.

    Otherwise a schedule that ran at a wrong time would not run again until that time. An instant that was sent then is
    not sent again, because its message has the same key.
    """
    after = now + WRONG_CLOCK
    ahead = Schedule.objects.filter(next_at__gt=after).filter(Q(last_run_at__gt=after) | Q(updated_at__gt=after))
    count = 0
    for row in ahead[:BATCH]:
        try:
            following = next_after(row.cron, row.zone, now)
        except (ValueError, ZoneInfoNotFoundError):  # the schedule is paused when it is due
            continue
        if following is not None and row.next_at is not None and following < row.next_at:
            count += Schedule.objects.filter(pk=row.pk, next_at=row.next_at).update(next_at=following)
    return count


@transaction.atomic
def _start(schedule_id: str, session_id: str, now: datetime) -> bool:
    """Claim the newest instant that is due, and send the message. Return whether it was sent."""
    try:
        tx = SessionTransaction.lock(session_id)
    except NoSuchSession:
        return False
    row = Schedule.objects.select_related("session", "owner").filter(pk=schedule_id, next_at__lte=now).first()
    if row is None or (due := _claim(row, now)) is None:
        return False
    settle_last_run(row)  # it may pause the schedule after too many failures
    if reason := row.paused or _obstacle(row, tx.session):
        _pause(row, reason)
        return False
    if is_queued(row):
        return False
    key = f"schedule:{row.pk}:{due:%Y%m%dT%H%M%SZ}"
    try:
        sent = send_message(session=tx.session, author=row.owner, text=row.text, key=key, schedule=row)
    except ServiceError as refused:
        _refuse(row, refused, now)
        return False
    record_run(row, sent, now)
    return True


def _claim(row: Schedule, now: datetime) -> datetime | None:
    """Set the next instant, and return the newest one that is due. Return None if another process was first."""
    if row.next_at is None:
        return None
    try:
        due, following = latest_until(row.cron, row.zone, row.next_at, now), next_after(row.cron, row.zone, now)
    except (ValueError, ZoneInfoNotFoundError):  # rows edited outside Parley, or a time zone that no longer exists
        _pause(row, Schedule.Pause.INVALID)
        return None
    if Schedule.objects.filter(pk=row.pk, next_at=row.next_at).update(next_at=following) != 1:
        return None
    row.next_at = following
    return due


def settle(deadline: Deadline = NO_DEADLINE) -> None:
    """Record how runs ended, for schedules whose last run is recorded as running."""
    running = Schedule.objects.filter(last_outcome=Schedule.Outcome.RUNNING)
    for schedule_id, session_id in list(running.values_list("pk", "session_id")[: 10 * BATCH]):
        if deadline.is_over:
            break
        try:
            _settle_one(schedule_id, session_id)
        except Exception:  # the next check tries again
            logger.exception("Could not record the end of a run of schedule %s", schedule_id)


def _settle_one(schedule_id: str, session_id: str) -> None:
    row = Schedule.objects.filter(pk=schedule_id).first()
    if row is None or end_of(row) is None:  # most runs have not ended, so no lock is taken for them
        return
    with suppress(NoSuchSession), transaction.atomic():
        SessionTransaction.lock(session_id)
        row = Schedule.objects.filter(pk=schedule_id).first()
        if row is not None:
            settle_last_run(row)


def _refuse(row: Schedule, refused: ServiceError, now: datetime) -> None:
    logger.info("A run of schedule %s was refused: %s", row.pk, refused.code)
    row.last_run_at, row.last_message_id = now, ""
    row.last_outcome, row.last_error = Schedule.Outcome.REFUSED, refused.code[:40]
    count_failure(row)
    columns = ["last_run_at", "last_message_id", "last_outcome", "last_error", "failures", "is_on", "paused", "next_at"]
    row.save(update_fields=columns)


def _obstacle(row: Schedule, session: Session) -> str:
    """Return why a schedule can no longer run, or "" if it can."""
    if session.status == Session.Status.DELETED:
        return Schedule.Pause.DELETED
    if session.status == Session.Status.ARCHIVED:
        return Schedule.Pause.ARCHIVED
    return "" if may_schedule(row.owner, session) else Schedule.Pause.ACCESS


def _pause(row: Schedule, reason: str) -> None:
    logger.info("Schedule %s was paused: %s", row.pk, reason)
    row.pause(reason)
    row.save(update_fields=["is_on", "paused", "next_at"])
