"""The access gate: all sessions, workspaces and users that a request names are fetched here."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from django.contrib.auth.models import AnonymousUser
from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext as _

from chat import ids
from chat.errors import Forbidden, NoSuchSession, NoSuchWorkspace, NotForGuests
from chat.models import Membership, Session, SessionRole, Share, User, Workspace


class Permission(StrEnum):
    """What a role in a workspace permits, besides work in sessions. docs/users.md has the table."""

    BEGIN_SESSIONS = "begin_sessions"
    INVITE = "invite"
    SEE_MEMBERS = "see_members"
    MAKE_AGENTS = "make_agents"
    SEE_USAGE = "see_usage"
    MANAGE_RULES = "manage_rules"
    MANAGE_NOTES = "manage_notes"
    MANAGE_AGENTS = "manage_agents"
    MANAGE_TOOLS = "manage_tools"
    MANAGE_MEMBERS = "manage_members"


_OF_MEMBERS = frozenset({Permission.BEGIN_SESSIONS, Permission.INVITE, Permission.SEE_MEMBERS, Permission.MAKE_AGENTS})
PERMISSIONS: dict[str, frozenset[Permission]] = {
    Membership.Role.OWNER: frozenset(Permission),
    Membership.Role.ADMIN: frozenset(Permission),
    Membership.Role.MEMBER: _OF_MEMBERS,
    Membership.Role.GUEST: frozenset(),
}


def sessions_of(user: User | AnonymousUser) -> QuerySet[Session]:
    """Return the sessions that a user may see: their own and those shared with them, without deleted ones.

    The query checks that the user is active, because a socket's user object is as old as the socket.
    """
    if not isinstance(user, User):
        return Session.objects.none()
    shared = _shares().filter(user=user).values("session")
    sessions = Session.objects.filter(Q(owner=user, owner__is_active=True) | Q(pk__in=shared))
    return sessions.exclude(status=Session.Status.DELETED)


def session_for(
    user: User | AnonymousUser, session_id: str, needs: SessionRole = SessionRole.VIEWER
) -> tuple[Session, SessionRole]:
    """Fetch a session in which the user has at least the role `needs`; return it with the user's role.

    Raises NoSuchSession if it does not exist or the user may not see it, Forbidden if the role is not sufficient.
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


def memberships_of(user: User) -> QuerySet[Membership]:
    """Return a user's memberships except those as a guest, which give access to single sessions only."""
    return Membership.objects.filter(user=user).exclude(role=Membership.Role.GUEST)


def workspace_for(user: User, workspace_id: int | None) -> Workspace:
    """Fetch a workspace of which the user is a member, not a guest. Raises NoSuchWorkspace, also for None."""
    mine = memberships_of(user).values("workspace")
    workspace = Workspace.objects.filter(pk=workspace_id, pk__in=mine).first() if workspace_id else None
    if workspace is None:
        raise NoSuchWorkspace
    return workspace


def workspaces_where(user: User, permission: Permission) -> QuerySet[Workspace]:
    """Return the workspaces in which the user's role has a permission."""
    mine = memberships_of(user).filter(role__in=roles_with(permission))
    return Workspace.objects.filter(pk__in=mine.values("workspace"))


def roles_with(permission: Permission) -> list[str]:
    """Return the roles that have a permission."""
    return [role for role, permissions in PERMISSIONS.items() if permission in permissions]


def may(user: User, permission: Permission, workspace_id: int) -> bool:
    """Return whether the user's role in a workspace has a permission."""
    return workspaces_where(user, permission).filter(pk=workspace_id).exists()


def workspace_where(user: User, permission: Permission, workspace_id: int | None) -> Workspace:
    """Fetch a workspace in which the user has a permission.

    Raises NoSuchWorkspace if they are not a member of it, Forbidden if their role is not sufficient.
    """
    workspace = workspace_for(user, workspace_id)
    if not may(user, permission, workspace.pk):
        raise Forbidden(_("Your role in this workspace doesn’t allow that. Ask an owner or admin."))
    return workspace


def may_begin_sessions(user: User) -> bool:
    """Return whether a user may start sessions in any workspace. Users who are only guests may not."""
    return memberships_of(user).exists() or _may_own_workspace(user)


def require_no_guest(user: User, session: Session) -> None:
    """Raise NotForGuests if the user is a guest of the session's workspace: guests cannot choose models or agents."""
    if is_guest_in(user, session):
        raise NotForGuests


def is_guest_in(user: User, session: Session) -> bool:
    """Return whether a user is a guest of the session's workspace."""
    guests = Membership.objects.filter(user=user, workspace=session.workspace_id, role=Membership.Role.GUEST)
    return guests.exists()


def person_for(viewer: User, user_id: int) -> User | None:
    """Fetch a user if the viewer may see them: they share a workspace or a session. Return None if not."""
    if user_id == viewer.pk:
        return viewer
    seen = sessions_of(viewer).order_by()
    known = (
        Q(memberships__workspace__in=memberships_of(viewer).values("workspace"))
        | Q(sessions__in=seen.values("pk"))
        | Q(shares__session__in=seen.values("pk"))
    )
    return User.objects.filter(known, pk=user_id).first()


def _may_own_workspace(user: User) -> bool:
    """Return whether a user without a membership may get a workspace of their own, as stored in the database."""
    return User.objects.filter(pk=user.pk, can_own_workspace=True).exists()


def deleted_sessions_of(user: User) -> QuerySet[Session]:
    """Return the deleted sessions that a user may restore: their own, except those being written or erased."""
    deleted = Session.objects.filter(owner=user, owner__is_active=True, status=Session.Status.DELETED)
    return deleted.filter(building_until=None)


def deleted_session_for(user: User, session_id: str) -> Session:
    """Fetch a deleted session that a user may restore. Raises NoSuchSession."""
    session = deleted_sessions_of(user).filter(pk=session_id).first() if ids.may_be_one(session_id) else None
    if session is None:
        raise NoSuchSession
    return session


def session_for_staff(
    user: User | AnonymousUser, session_id: str, *, needs_change: bool, is_deleted: bool = False
) -> Session:
    """Fetch any session, including deleted ones, for staff with the admin's permissions.

    `is_deleted` allows changes of a deleted session. Raises NoSuchSession, and Forbidden for users without permission
    and for other changes of deleted sessions.
    """
    permissions = ["chat.change_session"] if needs_change else ["chat.view_session", "chat.change_session"]
    if not isinstance(user, User) or not user.is_staff or not any(map(user.has_perm, permissions)):
        raise Forbidden(_("You don’t have permission to do that in the admin."))
    sessions = Session.objects.select_related("owner", "workspace", "run", "parent_session").filter(building_until=None)
    session = sessions.filter(pk=session_id).first() if ids.may_be_one(session_id) else None
    if session is None:
        raise NoSuchSession
    if needs_change and not is_deleted and session.status == Session.Status.DELETED:
        raise Forbidden(_("This session is deleted. It can be viewed but not changed."))
    return session


def role_in(user: User, session: Session) -> SessionRole | None:
    """Return a user's role in a session that is not deleted; None if they have no access."""
    if session.owner_id == user.pk:
        return SessionRole.OWNER
    share = _shares().filter(session=session, user=user).first()
    return SessionRole(share.role) if share else None


def roles(pairs: Iterable[tuple[int, str]]) -> dict[tuple[int, str], SessionRole]:
    """Return the roles for pairs of user id and session id, in two queries. Pairs without access are missing."""
    pairs = set(pairs)
    users, sessions = {user for user, _ in pairs}, {session for _, session in pairs}
    found: dict[tuple[int, str], SessionRole] = {
        (user, session): SessionRole(role)
        for user, session, role in _shares()
        .filter(user__in=users, session__in=sessions)
        .values_list("user_id", "session_id", "role")
    }
    owners = Session.objects.filter(pk__in=sessions, owner__in=users, owner__is_active=True)
    owners = owners.exclude(status=Session.Status.DELETED)
    found.update(dict.fromkeys(owners.values_list("owner_id", "pk"), SessionRole.OWNER))
    return {pair: role for pair, role in found.items() if pair in pairs}


def writers_in(session_id: str) -> int:
    """Return how many people can write in a session."""
    return 1 + _shares().filter(session=session_id, role=SessionRole.EDITOR).distinct().count()


def people_in(session_ids: Iterable[str]) -> set[int]:
    """Return the ids of all users with access to any of these sessions, even if it is deleted, in one query."""
    ids = set(session_ids)
    owners = Session.objects.filter(pk__in=ids, owner__is_active=True).values_list("owner_id")
    shares = Share.objects.filter(session__in=ids, user__is_active=True)
    guests = shares.filter(user__memberships__workspace=F("session__workspace")).values_list("user_id")
    return {user_id for (user_id,) in owners.union(guests)}


def _shares() -> QuerySet[Share]:
    """Return valid shares: the user is active and still in the workspace, and the session is not deleted."""
    shares = Share.objects.filter(user__is_active=True, user__memberships__workspace=F("session__workspace"))
    return shares.exclude(session__status=Session.Status.DELETED)
