"""The one gate through which every session is fetched."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import AnonymousUser
from django.db.models import F, Q, QuerySet

from chat.models import Role, Session, Share, User
from chat.services.errors import Forbidden, NoSuchSession


def sessions_of(user: User | AnonymousUser) -> QuerySet[Session]:
    """All sessions that the user may see: their own, and those shared with them.

    Whether they are active is asked of their row: a socket knows them as they were when it was opened.
    """
    if not isinstance(user, User):
        return Session.objects.none()
    shared = _shares().filter(user=user).values("session")
    return Session.objects.filter(Q(owner=user, owner__is_active=True) | Q(pk__in=shared))


def session_for(user: User | AnonymousUser, session_id: str, needs: Role = Role.VIEWER) -> tuple[Session, Role]:
    """Fetch a session for somebody who needs a role in it.

    Raises NoSuchSession when there is none or the user may not know of it, Forbidden when they may see it but not
    do this.
    """
    session = sessions_of(user).filter(pk=session_id).first() if _is_text(session_id) else None
    if session is None or not isinstance(user, User):
        raise NoSuchSession
    role = role_in(user, session)
    if role is None:
        raise NoSuchSession
    if not role.covers(needs):
        raise Forbidden
    return session, role


def role_in(user: User, session: Session) -> Role | None:
    """The user's role in a session; None for strangers."""
    if session.owner_id == user.pk:
        return Role.OWNER
    share = _shares().filter(session=session, user=user).first()
    return Role(share.role) if share else None


def roles(pairs: Iterable[tuple[int, str]]) -> dict[tuple[int, str], Role]:
    """The present roles of many (user id, session id) pairs, in two queries.

    Strangers and inactive people are missing.
    """
    pairs = set(pairs)
    users, sessions = {user for user, _ in pairs}, {session for _, session in pairs}
    found: dict[tuple[int, str], Role] = {
        (user, session): Role(role)
        for user, session, role in _shares()
        .filter(user__in=users, session__in=sessions)
        .values_list("user_id", "session_id", "role")
    }
    owners = Session.objects.filter(pk__in=sessions, owner__in=users, owner__is_active=True)
    found.update(dict.fromkeys(owners.values_list("owner_id", "pk"), Role.OWNER))
    return {pair: role for pair, role in found.items() if pair in pairs}


def _shares() -> QuerySet[Share]:
    """The shares that count: of active people who are still members of the session's workspace."""
    return Share.objects.filter(user__is_active=True, user__memberships__workspace=F("session__workspace"))


def _is_text(session_id: object) -> bool:
    return isinstance(session_id, str) and session_id.isascii() and "\0" not in session_id
