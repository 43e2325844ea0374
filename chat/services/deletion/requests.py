"""Erasure requests: executed in batches, continued after a crash, and kept without content."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Model
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import NoSuchSession, ServiceError
from chat.models import Attachment, ChatMessage, Erasure, MessageRevision, Session, User
from chat.queries import subsessions
from chat.services.batches import NO_DEADLINE, Counts, Deadline
from chat.services.deletion import overwriting, sessions, users
from chat.services.people.security_log import Kind as Event
from chat.services.people.security_log import record

Kind = Erasure.Kind


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """The numbers of rows that erasing a session would delete. `forks` are independent sessions, and stay.

    `subsessions` are the sessions in which agents work for it. Their rows count, too.
    """

    subsessions: int
    messages: int
    revisions: int
    files: int
    forks: int


def plan_session(session: Session) -> SessionPlan:
    """Count what erasing a session would delete."""
    below = subsessions.below(session.pk)
    erased = [session.pk, *below]
    return SessionPlan(
        subsessions=len(below),
        messages=ChatMessage.objects.filter(session__in=erased).count(),
        revisions=MessageRevision.objects.filter(message__session__in=erased).count(),
        files=Attachment.objects.filter(session__in=erased).count(),
        forks=Session.objects.filter(parent_session__in=erased).exclude(pk__in=erased).count(),
    )


def request_session(*, session_id: str, author: User | None) -> Erasure:
    """Close a session permanently and request its erasure, and that of sessions in which agents work for it.

    Return the request for the session itself. Raise NoSuchSession.
    """
    return request_sessions(session_id=session_id, author=author)[-1]


@transaction.atomic
def request_sessions(*, session_id: str, author: User | None) -> list[Erasure]:
    """Do the same as `request_session`, and return all requests. `author` is None for commands."""
    below = subsessions.below(session_id)
    if not sessions.close(session_id):
        raise NoSuchSession
    children = [_request(Kind.SESSION, child, author) for child in below if sessions.close(child)]
    return [*children, _request(Kind.SESSION, session_id, author)]


@transaction.atomic
def request_user(*, user: User, author: User | None) -> Erasure:
    """Close a user's account permanently and request the erasure of the user's data.

    Raise ServiceError for the author's own account and for the last administrator's.
    """
    if author is not None and author.pk == user.pk:
        raise ServiceError("own_account", _("Ask another administrator to erase your account."))
    users.close_account(user, author)
    return _request(Kind.USER, str(user.pk), author)


def carry_out(erasure: Erasure, deadline: Deadline = NO_DEADLINE) -> bool:
    """Execute an erasure request. Return False if the deadline came first; the maintenance job continues it."""
    counts = Counts(erasure.counts)
    try:
        if erasure.kind == Kind.SESSION:
            is_done = sessions.erase_rows(erasure.target, counts, deadline)
        else:
            is_done = users.erase_user(int(erasure.target), counts, deadline)
    finally:
        erasure.counts = dict(+counts)
        Erasure.objects.filter(pk=erasure.pk).update(counts=erasure.counts)
    if is_done:
        with transaction.atomic():
            erasure.finished_at = timezone.now()
            erasure.save(update_fields=["finished_at"])
            overwriting.request()
            record(Event.ERASED, actor=erasure.requested_by, target=_target(erasure), **erasure.counts)
    return is_done


def unfinished() -> list[Erasure]:
    """Return the unfinished requests, the oldest first."""
    return list(Erasure.objects.filter(finished_at=None).order_by("requested_at", "pk"))


def _request(kind: Kind, target: str, author: User | None) -> Erasure:
    known = Erasure.objects.filter(kind=kind, target=target, finished_at=None).first()
    erasure = known or Erasure.objects.create(kind=kind, target=target, requested_by=author)
    record(Event.ERASURE_REQUESTED, actor=author, target=_target(erasure))
    return erasure


def _target(erasure: Erasure) -> Model:
    """Return the object of a request, with its id only, because its row may be deleted."""
    return Session(pk=erasure.target) if erasure.kind == Kind.SESSION else User(pk=int(erasure.target))
