"""The one gate through which every session is fetched."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import AnonymousUser
from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext as _

from chat import ids
from chat.models import Role, Session, Share, User, Workspace
from chat.services.errors import Forbidden, NoSuchSession, NoSuchWorkspace


def sessions_of(user: User | AnonymousUser) -> QuerySet[Session]:
    """All sessions that the user may see: their own, and those shared with them; none that is deleted.

    Whether they are active is asked of their row: a socket knows them as they were when it was opened.
    """
    if not isinstance(user, User):
        return Session.objects.none()
    shared = _shares().filter(user=user).values("session")
    sessions = Session.objects.filter(Q(owner=user, owner__is_active=True) | Q(pk__in=shared))
    return sessions.exclude(status=Session.Status.DELETED)


def session_for(user: User | AnonymousUser, session_id: str, needs: Role = Role.VIEWER) -> tuple[Session, Role]:
    """Fetch a session for somebody who needs a role in it.

    Raises NoSuchSession when there is none or the user may not know of it, Forbidden when they may see it but not
    do this.
    """
    session = sessions_of(user).filter(pk=session_id).first() if ids.may_be_one(session_id) else None
    if session is None or not isinstance(user, User):
        raise NoSuchSession
    role = role_in(user, session)
    if role is None:
        raise NoSuchSession
    if not role.covers(needs):
        raise Forbidden
    return session, role


def workspace_for(user: User, workspace_id: int | None) -> Workspace:
    """Fetch a workspace for a member of it. Raises NoSuchWorkspace, also for None: that was no id."""
    workspace = Workspace.objects.filter(members=user, pk=workspace_id).first() if workspace_id else None
    if workspace is None:
        raise NoSuchWorkspace
    return workspace


def deleted_sessions_of(user: User) -> QuerySet[Session]:
    """Return the deleted sessions that the user may restore: their own."""
    deleted = Session.objects.filter(owner=user, owner__is_active=True, status=Session.Status.DELETED)
    return deleted.filter(building_until=None)


def deleted_session_for(user: User, session_id: str) -> Session:
    """Fetch a deleted session for its owner, who alone may restore it. Raises NoSuchSession."""
    session = deleted_sessions_of(user).filter(pk=session_id).first() if ids.may_be_one(session_id) else None
    if session is None:
        raise NoSuchSession
    return session


def session_for_staff(
    user: User | AnonymousUser, session_id: str, *, needs_change: bool, is_deleted: bool = False
) -> Session:
    """Fetch any session, deleted ones too, for staff whom the admin's permissions let in; with owner, workspace, run.

    Raises Forbidden for everybody else, and for changes of a deleted session, unless it is to be one (`is_deleted`);
    NoSuchSession.
    """
    permissions = ["chat.change_session"] if needs_change else ["chat.view_session", "chat.change_session"]
    if not isinstance(user, User) or not user.is_staff or not any(map(user.has_perm, permissions)):
        raise Forbidden(_("The admin’s permissions that you have do not cover that."))
    sessions = Session.objects.select_related("owner", "workspace", "run", "parent_session").filter(building_until=None)
    session = sessions.filter(pk=session_id).first() if ids.may_be_one(session_id) else None
    if session is None:
        raise NoSuchSession
    if needs_change and not is_deleted and session.status == Session.Status.DELETED:
        raise Forbidden(_("This session has been deleted: it can be looked at, not changed."))
    return session


def role_in(user: User, session: Session) -> Role | None:
    """The user's role in a session that is not deleted; None for strangers."""
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
    owners = owners.exclude(status=Session.Status.DELETED)
    found.update(dict.fromkeys(owners.values_list("owner_id", "pk"), Role.OWNER))
    return {pair: role for pair, role in found.items() if pair in pairs}


def people_in(session_ids: Iterable[str]) -> set[int]:
    """The ids of all who may see any of these sessions, or might if it were not deleted; in one query."""
    ids = set(session_ids)
    owners = Session.objects.filter(pk__in=ids, owner__is_active=True).values_list("owner_id")
    shares = Share.objects.filter(session__in=ids, user__is_active=True)
    guests = shares.filter(user__memberships__workspace=F("session__workspace")).values_list("user_id")
    return {user_id for (user_id,) in owners.union(guests)}


def _shares() -> QuerySet[Share]:
    """The shares that count: of active people who are still members of the workspace, in sessions that are there."""
    shares = Share.objects.filter(user__is_active=True, user__memberships__workspace=F("session__workspace"))
    return shares.exclude(session__status=Session.Status.DELETED)
