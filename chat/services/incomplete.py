"""Sessions whose rows are written or deleted in several transactions.

Such a session has `incomplete_at` and the status DELETED, so that no one can open, list or restore it. Each transaction
sets `incomplete_at` anew. A session that no transaction has touched for a while is left over from a crash, whatever it
was to become: the maintenance job deletes the rest of it.
"""

from __future__ import annotations

from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.models import Session, User
from chat.services.errors import Busy, NoSuchSession

ABANDONED_AFTER = timedelta(minutes=10)


def new_columns() -> dict[str, object]:
    """Return the columns of a session that is going to be written in several transactions."""
    return {"status": Session.Status.DELETED, "incomplete_at": timezone.now()}


def touch(session: Session) -> None:
    """Keep an incomplete session for the next batch, within its transaction.

    Raises NoSuchSession when it was taken for abandoned and is being deleted.
    """
    _replace(session, incomplete_at=timezone.now())


def complete(session: Session) -> None:
    """Show a session to its owner now that all its rows are written. Raises NoSuchSession as `touch` does."""
    _replace(session, incomplete_at=None, status=Session.Status.ACTIVE)


def abandoned() -> QuerySet[Session]:
    """Return the sessions that a crash has left incomplete."""
    return Session.objects.filter(incomplete_at__lt=timezone.now() - ABANDONED_AFTER)


def require_none_of(owner: User) -> None:
    """Refuse a second large copy at the same time. Raises Busy."""
    recent = Session.objects.filter(owner=owner, incomplete_at__gte=timezone.now() - ABANDONED_AFTER)
    if recent.exists():
        raise Busy(_("Another large session of yours is being copied. Try again in a moment."))


def _replace(session: Session, **values: object) -> None:
    same = Session.objects.filter(pk=session.pk, incomplete_at=session.incomplete_at)
    if session.incomplete_at is None or same.update(**values) != 1:
        raise NoSuchSession
    for column, value in values.items():
        setattr(session, column, value)
