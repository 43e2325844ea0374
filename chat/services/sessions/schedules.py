"""Add, change, remove, restore and run the schedules of a session.

A schedule sends messages as its owner, so only its owner changes it. The session's owner can turn it off and remove it.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import ids
from chat.access import may_schedule, schedule_for, session_to_schedule
from chat.errors import Forbidden, Invalid, NoSuchSchedule, ServiceError
from chat.limits.rates import limited
from chat.models import ChatMessage, MessageStatus, Schedule, Session, User
from chat.queries.turn_outcomes import Outcome, read_outcome
from chat.recurrence import BadCron, next_after, valid_cron, zone_names
from chat.services.idempotency import id_of_key, request_digest
from chat.services.messages.sending import Sent, send_message
from chat.services.messages.validation import validate_message
from chat.services.people.security_log import Kind, record
from chat.services.transaction import SessionTransaction

# The most schedules of a session, and the most removed ones that can be restored.
MAX_SCHEDULES = 20
MAX_REMOVED = 20
# The most schedules of a user in all sessions. Schedules that are due at the same moment delay those of other users.
MAX_OF_USER = 200
# Failed runs in a row after which a schedule is paused.
MAX_FAILURES = 5
ENDS = {
    Outcome.COMPLETED: Schedule.Outcome.COMPLETED,
    Outcome.INTERRUPTED: Schedule.Outcome.INTERRUPTED,
    Outcome.FAILED: Schedule.Outcome.FAILED,
    Outcome.WITHDRAWN: Schedule.Outcome.WITHDRAWN,
}


@limited("changes", by="author")
@transaction.atomic
def add(
    *, author: User, session_id: str, text: str, cron: str, zone: str, is_on: bool = True, key: str = ""
) -> Schedule:
    """Add a schedule of the author. With a `key`, the same schedule is added only once, unless it has been removed.

    Raise ServiceError; it is Invalid for unusable values or too many schedules.
    """
    session, _role = session_to_schedule(author, session_id)
    tx = SessionTransaction.lock(session.pk)
    tx.require_active()
    pk = ids.schedule_id()
    if key:
        values = request_digest({"text": text, "cron": cron, "zone": zone})
        keyed = id_of_key("c", user=author, purpose=f"schedule {session.pk} {values}", key=key)
        before = Schedule.objects.filter(pk=keyed).first()
        if before is not None and before.removed_at is None:
            return before
        pk = keyed if before is None else pk
    _require_room(session, author.pk)
    row = Schedule(pk=pk, session=session, owner=author, is_on=is_on)
    _set(row, text=text, cron=cron, zone=zone)
    row.next_at = _next(row) if is_on else None
    row.save(force_insert=True)
    return row


@limited("changes", by="author")
@transaction.atomic
def change(
    *,
    author: User,
    session_id: str,
    schedule_id: str,
    text: str | None = None,
    cron: str | None = None,
    zone: str | None = None,
    is_on: bool | None = None,
    seen: Collection[int] | None = None,
) -> Schedule:
    """Change a schedule, or turn it on or off; None keeps a value. Turning it on clears the reason for its pause.

    `seen` are the revisions to which the change applies; None means any. Raise ServiceError, "stale" for another
    revision.
    """
    only_off = text is None and cron is None and zone is None and is_on is False
    row, tx = _lock(author, session_id, schedule_id, only_own=not only_off)
    _require_seen(row, seen)
    if is_on:
        tx.require_active()
    kept = {"text": row.text, "cron": row.cron, "zone": row.zone}
    given = {"text": text, "cron": cron, "zone": zone}
    _set(row, **{name: kept[name] if value is None else value for name, value in given.items()})
    is_turned_on = bool(is_on) and not row.is_on
    if is_turned_on:
        row.paused, row.failures = "", 0
    row.is_on = row.is_on if is_on is None else is_on
    if not row.is_on:
        row.next_at = None
    elif is_turned_on or cron is not None or zone is not None:
        row.next_at = _next(row)
    row.save()
    return row


@limited("changes", by="author")
@transaction.atomic
def remove(*, author: User, session_id: str, schedule_id: str, seen: Collection[int] | None = None) -> Schedule:
    """Remove a schedule. The last MAX_REMOVED ones can be restored, until they are purged. Can be repeated.

    `seen` is as in `change`. Raise ServiceError.
    """
    row, _tx = _lock(author, session_id, schedule_id, only_own=False, removed=True)
    if row.removed_at is None:
        _require_seen(row, seen)
        row.removed_at = timezone.now()
        row.next_at = None
        row.save()
        removed = Schedule.objects.filter(session=row.session_id, removed_at__isnull=False).order_by("-removed_at")
        Schedule.objects.filter(pk__in=list(removed.values_list("pk", flat=True)[MAX_REMOVED:])).delete()
    return row


@limited("changes", by="author")
@transaction.atomic
def restore(*, author: User, session_id: str, schedule_id: str) -> Schedule:
    """Restore a removed schedule, on or off as it was. Raise ServiceError.

    If another user than its owner restores it, it is off: its owner may have removed it to stop sending its messages.
    """
    row, tx = _lock(author, session_id, schedule_id, only_own=False, removed=True)
    if row.removed_at is None:
        return row
    tx.require_active()
    _require_room(row.session, row.owner_id)
    row.removed_at = None
    row.is_on = row.is_on and row.owner_id == author.pk
    row.next_at = _next(row) if row.is_on else None
    row.save()
    return row


@limited("sends", by="author")
@transaction.atomic
def run_now(*, author: User, session_id: str, schedule_id: str) -> Sent:
    """Send the message of a schedule now, whether it is on or off. Raise ServiceError."""
    row, _tx = _lock(author, session_id, schedule_id, only_own=True)
    if is_queued(row):
        raise ServiceError("queued", _("The last run is still in the queue."))
    settle_last_run(row)
    sent = send_message(session=row.session, author=row.owner, text=row.text, schedule=row)
    record_run(row, sent, timezone.now())
    return sent


@transaction.atomic
def pause_for_staff(*, author: User, schedule_id: str, session_id: str) -> bool:
    """Turn off a schedule of any user. The schedule's dialog states that staff did, and the user can turn it on again.

    Return False if it is off already. Raise NoSuchSchedule.
    """
    row, _tx = _locked_for_staff(schedule_id, session_id)
    if not row.is_on:
        return False
    row.pause(Schedule.Pause.STAFF)
    row.save()
    record(Kind.SCHEDULE_PAUSED, actor=author, person=row.owner_id, target=row)
    return True


@transaction.atomic
def resume_for_staff(*, author: User, schedule_id: str, session_id: str) -> bool:
    """Turn on a schedule of any user, whatever paused it. Return False if it is on already. Raise ServiceError."""
    row, tx = _locked_for_staff(schedule_id, session_id)
    if row.is_on:
        return False
    tx.require_active()
    if not may_schedule(row.owner, tx.session):
        raise Forbidden(_("The person who created this schedule can’t write in its session anymore."))
    _set(row, text=row.text, cron=row.cron, zone=row.zone)  # it may have been paused as invalid
    row.is_on, row.next_at, row.paused, row.failures = True, _next(row), "", 0
    row.save()
    record(Kind.SCHEDULE_RESUMED, actor=author, person=row.owner_id, target=row)
    return True


def _locked_for_staff(schedule_id: str, session_id: str) -> tuple[Schedule, SessionTransaction]:
    tx = SessionTransaction.lock(session_id)
    row = Schedule.objects.select_related("owner").filter(pk=schedule_id, session=session_id, removed_at=None).first()
    if row is None:
        raise NoSuchSchedule
    return row, tx


def record_run(row: Schedule, sent: Sent, now: datetime) -> None:
    """Store the message and the time of a run that begins."""
    row.last_run_at, row.last_message_id = now, sent.id
    row.last_outcome, row.last_error = Schedule.Outcome.RUNNING, ""
    row.save(update_fields=["last_run_at", "last_message_id", "last_outcome", "last_error"])


def settle_last_run(row: Schedule) -> None:
    """Record how a schedule's last run ended. Pause it after too many failures. The caller locks its session."""
    outcome = end_of(row)
    if outcome is None:
        return
    row.last_outcome = outcome
    if outcome == Schedule.Outcome.COMPLETED:
        row.failures = 0
    if outcome == Schedule.Outcome.FAILED:
        count_failure(row)
    row.save(update_fields=["last_outcome", "failures", "is_on", "paused", "next_at"])


def end_of(row: Schedule) -> Schedule.Outcome | None:
    """Return how the last run ended, or None if it has not ended or its end is recorded."""
    if row.last_outcome != Schedule.Outcome.RUNNING:
        return None
    return ENDS.get(read_outcome(row.session_id, row.last_message_id).outcome)


def count_failure(row: Schedule) -> None:
    """Count a failed run, and pause the schedule if it is one too many. The caller saves the row."""
    row.failures += 1
    if row.failures >= MAX_FAILURES and row.is_on:
        row.pause(Schedule.Pause.FAILURES)


def is_queued(row: Schedule) -> bool:
    """Return whether the message of the last run is still queued, and was not held by a stop."""
    last = ChatMessage.objects.filter(pk=row.last_message_id, status=MessageStatus.QUEUED)
    return last.filter(removed_at=None, held=False).exists()


def _lock(
    author: User, session_id: str, schedule_id: str, *, only_own: bool, removed: bool = False
) -> tuple[Schedule, SessionTransaction]:
    """Lock a schedule's session, as all writers of schedules do, and return the schedule as read after that."""
    schedule_for(author, session_id, schedule_id, only_own=only_own)
    tx = SessionTransaction.lock(session_id)
    row = schedule_for(author, session_id, schedule_id, only_own=only_own)
    if row.removed_at is not None and not removed:
        raise NoSuchSchedule
    return row, tx


def _require_seen(row: Schedule, seen: Collection[int] | None) -> None:
    """Raise ServiceError "stale" if a user changes a schedule whose present values they have not seen."""
    if seen is not None and row.revision not in seen:
        raise ServiceError("stale", _("This schedule was changed in the meantime."), revision=row.revision)


def _require_room(session: Session, owner_id: int | None) -> None:
    kept = Schedule.objects.filter(removed_at=None)
    if kept.filter(session=session).count() >= MAX_SCHEDULES:
        raise Invalid(_("A session can have up to %(count)d schedules. Delete one first.") % {"count": MAX_SCHEDULES})
    if kept.filter(owner=owner_id).count() >= MAX_OF_USER:
        message = _("A person can have up to %(count)d schedules in all sessions. Delete one first.")
        raise Invalid(message % {"count": MAX_OF_USER})


def _set(row: Schedule, *, text: str, cron: str, zone: str) -> None:
    """Validate the values and set them, without saving. Raise ServiceError."""
    if zone not in zone_names():
        raise Invalid(_("Unknown time zone. Use a name such as Europe/Berlin."), "zone")
    try:
        row.cron = valid_cron(cron)
    except BadCron as error:
        words = {
            "minute": _("The minute isn’t valid. Use 0–59, such as 30 or */15."),
            "hour": _("The hour isn’t valid. Use 0–23, such as 9 or 9-17."),
            "day": _("The day isn’t valid. Use 1–31, such as 1 or 1,15."),
            "month": _("The month isn’t valid. Use 1–12, such as 1 or 1-6."),
            "weekday": _("The weekday isn’t valid. Use 0–7, such as 1 or 1-5."),
            "form": _("This is not a cron expression. It has five fields: minute, hour, day, month, weekday."),
            "never": _("This cron expression names no date in the next 50 years."),
            "too_often": _("A schedule can run at most every 5 minutes."),
        }
        raise Invalid(words[error.fault], "cron") from error
    row.text, row.zone = validate_message(text), zone


def _next(row: Schedule) -> datetime:
    following = next_after(row.cron, row.zone, timezone.now())
    if following is None:
        raise Invalid(_("This cron expression names no date in the next 50 years."), "cron")
    return following
