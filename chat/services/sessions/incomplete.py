"""Sessions whose rows are written or deleted in several transactions.

Such a session has `building_until` and the status DELETED, so that no user can open, list or restore it. Each
transaction extends `building_until`. If that time is over, the session was abandoned in a crash, and the maintenance
job deletes its rows.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import Busy, NoSuchSession
from chat.models import Session, User

ABANDONED_AFTER = timedelta(minutes=10)


def until() -> datetime:
    """Return the time by which the next transaction must follow."""
    return timezone.now() + ABANDONED_AFTER


def new_columns() -> dict[str, object]:
    """Return the columns of a new session that is written in several transactions."""
    return {"status": Session.Status.DELETED, "building_until": until()}


def touch(session: Session) -> None:
    """Extend the time of an incomplete session for the next batch, in the batch's transaction.

    Raise NoSuchSession if it counted as abandoned and is being deleted.
    """
    _replace(session, building_until=until())


def complete(session: Session, status: str = Session.Status.ACTIVE) -> None:
    """Make a session visible after all its rows are written. Raise NoSuchSession as `touch` does."""
    _replace(session, building_until=None, status=status)


def abandoned() -> QuerySet[Session]:
    """Return the sessions that were abandoned in a crash."""
    return Session.objects.filter(building_until__lt=timezone.now())


def require_none_of(owner: User) -> None:
    """Raise Busy if another large session of the owner is being copied."""
    recent = Session.objects.filter(owner=owner, building_until__gte=timezone.now())
    if recent.exists():
        raise Busy(_("Another of your large sessions is being copied. Try again in a moment."))


def _replace(session: Session, **values: object) -> None:
    same = Session.objects.filter(pk=session.pk, building_until=session.building_until)
    if session.building_until is None or same.update(**values) != 1:
        raise NoSuchSession
    for column, value in values.items():
        setattr(session, column, value)
