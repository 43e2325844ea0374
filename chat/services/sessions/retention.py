"""Delete sessions that were not used for RETENTION_DAYS. They can be restored until they are purged."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from agents.delegates import MAX_LEVELS
from chat.models import RunState, Schedule, Session, SessionRun, UserSessionState
from chat.queries import subsessions
from chat.services.people.security_log import Kind, record
from chat.services.sessions.actions import set_deleted

# Lookups from a session in which an agent works for another one to the sessions above it.
_ABOVE = ["__".join(["caller_session"] * level) for level in range(1, MAX_LEVELS + 1)]


def unused(before: datetime) -> QuerySet[Session]:
    """Return the sessions without a change since a time that are not in use in another way.

    Sessions that are pinned, run or wait, have a schedule that is on, or a draft that a user has written since, are in
    use. A session in which an agent works for another one belongs to that one, and all are in use if one is.
    """
    is_used = ~Q(_is_resting(), updated_at__lt=before, building_until=None) | Q(_is_pinned()) | Q(_is_scheduled())
    is_used |= Q(_is_drafted(before))
    there = Session.objects.exclude(status=Session.Status.DELETED)
    used_below = [~Exists(there.filter(is_used, **{above: OuterRef("pk")})) for above in _ABOVE]
    return there.filter(~is_used, *used_below, caller_session=None)


def with_below(sessions: QuerySet[Session]) -> QuerySet[Session]:
    """Return sessions together with those in which agents work for them, which are deleted with them."""
    belongs = Q(pk__in=sessions.values("pk"))
    for above in _ABOVE:
        belongs |= Q(**{f"{above}__in": sessions.values("pk")})
    return Session.objects.exclude(status=Session.Status.DELETED).filter(belongs)


def _is_resting() -> Exists:
    return Exists(SessionRun.objects.filter(session=OuterRef("pk"), state=RunState.IDLE, owner=None, wanted=F("done")))


def _is_pinned() -> Exists:
    return Exists(UserSessionState.objects.filter(session=OuterRef("pk"), pinned_at__isnull=False))


def _is_drafted(since: datetime) -> Exists:
    return Exists(UserSessionState.objects.filter(session=OuterRef("pk"), draft_at__gte=since))


def _is_scheduled() -> Exists:
    return Exists(Schedule.objects.filter(session=OuterRef("pk"), next_at__isnull=False))


@transaction.atomic
def delete_if_unused(session_id: str, before: datetime) -> int:
    """Delete a session for all users, with those that belong to it, unless one was used in the meantime.

    Return how many were deleted.
    """
    for ids in ([session_id], subsessions.below(session_id)):
        list(Session.objects.select_for_update().filter(pk__in=ids).order_by("pk").values_list("pk"))
    session = unused(before).filter(pk=session_id).first()
    if session is None:
        return 0
    count = with_below(Session.objects.filter(pk=session_id)).count()
    set_deleted(session=session)
    record(Kind.SESSION_DELETED, actor=None, person=session.owner_id, target=session, reason="retention")
    return count
