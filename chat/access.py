"""The access gate. It fetches all sessions, workspaces and users that a request names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, F, Model, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from agents.approval import Approvers
from chat import ids
from chat.errors import Forbidden, NoSuchAgentHere, NoSuchSchedule, NoSuchSession, NoSuchWorkspace, NotForGuests
from chat.models import (
    AgentPreset,
    Membership,
    Schedule,
    Session,
    SessionRole,
    Share,
    User,
    UserSessionState,
    Workspace,
)
from chat.overrides.composed_queries import Composed
from chat.permissions import Permission, roles_with

# The form of agents' names. Some other texts would cause errors in PostgreSQL.
AGENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")


def sessions_of(user: User | AnonymousUser) -> QuerySet[Session]:
    """Return the sessions that a user may see: their own, those shared with them, and those open to their workspaces.

    Deleted sessions are left out. The query checks that the user is active, because a socket's user object was read
    when the socket was opened.
    """
    if not isinstance(user, User):
        return Session.objects.none()
    seen = _own_or_shared(user) | open_to(user)
    return Session.objects.filter(seen).exclude(status=Session.Status.DELETED)


def listed_sessions_of(user: User) -> QuerySet[Session]:
    """Return the sessions of a user's list. A session that is open to a workspace is listed once the user opens it."""
    entered = UserSessionState.objects.filter(user=user).values("session")
    listed = _own_or_shared(user) | Q(open_to(user), pk__in=entered)
    return Session.objects.filter(listed).exclude(status=Session.Status.DELETED)


def _own_or_shared(user: User) -> Q:
    return Q(owner=user, owner__is_active=True) | Q(pk__in=shares().filter(user=user).values("session"))


def always_listed_for(session_id: str, user_ids: Iterable[int]) -> set[int]:
    """Return the users who have a session in their list without opening it: its owner, and users with a share."""
    users = set(user_ids)
    owner = Session.objects.filter(pk=session_id, owner__in=users).values_list("owner", flat=True)
    return {*owner, *shares().filter(session=session_id, user__in=users).values_list("user", flat=True)}


def open_to(user: User) -> Q:
    """Return the condition for sessions, including deleted ones, that are open to members of a workspace of the user.

    It is a condition on the row, not on a set of all open sessions, so that a query for one session reads no others.
    """
    mine = memberships_of(user).filter(user__is_active=True)
    return Q(_is_open(), workspace__in=mine.values("workspace"))


def _is_open() -> Q:
    """Return the condition for sessions that are open. Owners who left the workspace do not open theirs to it."""
    return Q(is_member("owner", "workspace"), workspace_role__gt="")


def is_member(user: str, workspace: str) -> Exists:
    """Return the condition that the user at one path of a row is a member, not a guest, of the workspace at another."""
    members = Membership.objects.filter(user=OuterRef(user), workspace=OuterRef(workspace))
    return Exists(members.exclude(role=Membership.Role.GUEST))


def open_sessions() -> QuerySet[Session]:
    """Return the sessions that are open to their workspaces, without deleted ones."""
    return Session.objects.filter(_is_open()).exclude(status=Session.Status.DELETED)


def session_for(
    user: User | AnonymousUser, session_id: str, needs: SessionRole = SessionRole.VIEWER
) -> tuple[Session, SessionRole]:
    """Fetch a session in which the user has at least the role `needs`; return it with the user's role.

    Raise NoSuchSession if it does not exist or the user may not see it, Forbidden if the role is not sufficient.
    """
    if not isinstance(user, User) or not ids.may_be_one(session_id):
        raise NoSuchSession
    session = _VISIBLE.first(user.pk, session_id)
    role = role_in(user, session) if session is not None else None
    if session is None or role is None:
        raise NoSuchSession
    if not role.covers(needs):
        raise Forbidden
    return session, role


def still_has_role(user: User, session: Session, needs: SessionRole = SessionRole.VIEWER) -> bool:
    """Return whether a user still has at least a role in a session, for long operations that check it again."""
    role = roles([(user.pk, session.pk)]).get((user.pk, session.pk))
    return role is not None and role.covers(needs)


def still_active(user: User) -> bool:
    """Return whether a user is still active, for long operations that check it again."""
    return User.objects.filter(pk=user.pk, is_active=True).exists()


def memberships_of(user: User) -> QuerySet[Membership]:
    """Return a user's memberships except those as a guest, which give access to single sessions only."""
    return Membership.objects.filter(user=user).exclude(role=Membership.Role.GUEST)


def workspace_for(user: User, workspace_id: int | None) -> Workspace:
    """Fetch a workspace of which the user is a member, not a guest. Raise NoSuchWorkspace, also for None."""
    mine = memberships_of(user).values("workspace")
    workspace = Workspace.objects.filter(pk=workspace_id, pk__in=mine).first() if workspace_id else None
    if workspace is None:
        raise NoSuchWorkspace
    return workspace


def workspaces_where(user: User, permission: Permission) -> QuerySet[Workspace]:
    """Return the workspaces in which the user's role has a permission."""
    mine = memberships_of(user).filter(role__in=roles_with(permission))
    return Workspace.objects.filter(pk__in=mine.values("workspace"))


def sharing_workspace(session: Session) -> QuerySet[Workspace]:
    """Return the session's workspace as a query, if it shares its files, notes and servers with the session's agents.

    The query is empty if the session's owner is not a member of it, or only a guest. They keep the session, but not the
    files, notes and servers of the workspace.
    """
    members = Membership.objects.filter(user=session.owner_id, workspace=session.workspace_id)
    return Workspace.objects.filter(pk__in=members.exclude(role=Membership.Role.GUEST).values("workspace"))


def may_approve(user: User, session: Session, approvers: Approvers) -> bool:
    """Return whether a user has the role to approve a call. The caller checks that they may answer the call."""
    return not approvers or approving(approvers).filter(user=user, workspace=session.workspace_id).exists()


def approving(approvers: Approvers) -> QuerySet[Membership]:
    """Return the memberships with a role that may approve. Not for "", for which any editor of the session may."""
    roles = {"admin": (Membership.Role.ADMIN, Membership.Role.OWNER), "owner": (Membership.Role.OWNER,)}
    return Membership.objects.filter(role__in=roles[approvers])


def still_may_approve(user_ids: Iterable[int], session: Session, approvers: Approvers) -> set[int]:
    """Return the users who may approve a call now, because they can answer it and have the role that it needs."""
    found = roles((user_id, session.pk) for user_id in user_ids)
    editors = [user_id for (user_id, _session), role in found.items() if role.covers(SessionRole.EDITOR)]
    return {each.pk for each in User.objects.filter(pk__in=editors) if may_approve(each, session, approvers)}


def may(user: User, permission: Permission, workspace_id: int) -> bool:
    """Return whether the user's role in a workspace has a permission."""
    return workspaces_where(user, permission).filter(pk=workspace_id).exists()


def workspace_where(user: User, permission: Permission, workspace_id: int | None) -> Workspace:
    """Fetch a workspace in which the user has a permission.

    Raise NoSuchWorkspace if they are not a member of it, Forbidden if their role is not sufficient.
    """
    workspace = workspace_for(user, workspace_id)
    if not may(user, permission, workspace.pk):
        raise Forbidden(_("Your role in this workspace doesn’t allow that. Ask an owner or admin."))
    return workspace


def agents_in(user: User, workspace_id: int) -> QuerySet[AgentPreset]:
    """Return the agents of members that a user sees in a workspace: their own, and those that are shared."""
    theirs = workspaces_where(user, Permission.MAKE_AGENTS).filter(pk=workspace_id)
    return AgentPreset.objects.filter(Q(user=user) | Q(is_shared=True), workspace__in=theirs)


def agent_in(user: User, workspace_id: int, name: str) -> AgentPreset:
    """Fetch an agent of members that a user sees in a workspace. Raise NoSuchAgentHere."""
    row = agents_in(user, workspace_id).filter(name=name).first() if AGENT_NAME.fullmatch(name) else None
    if row is None:
        raise NoSuchAgentHere
    return row


def may_change_agent(user: User, row: AgentPreset, *, is_manager: bool) -> bool:
    """Return whether a user who sees an agent of a workspace may change it. Managers may change shared agents."""
    return row.user_id == user.pk or (is_manager and row.is_shared)


def agent_to_change(user: User, workspace_id: int, name: str) -> AgentPreset:
    """Fetch an agent of a workspace that a user may change.

    Raise NoSuchWorkspace, NoSuchAgentHere if the user does not see it, and Forbidden if only others may change it.
    """
    workspace = workspace_where(user, Permission.MAKE_AGENTS, workspace_id)
    row = agent_in(user, workspace.pk, name)
    if not may_change_agent(user, row, is_manager=may(user, Permission.MANAGE_AGENTS, workspace.pk)):
        raise Forbidden(_("Only its creator, and owners and admins of the workspace, can change this agent."))
    return row


def may_begin_sessions(user: User) -> bool:
    """Return whether a user may start sessions in any workspace. Users who are only guests may not."""
    # Read the present value, because a socket's user object was read when the socket was opened.
    return memberships_of(user).exists() or User.objects.filter(pk=user.pk, can_own_workspace=True).exists()


def require_no_guest(user: User, session: Session) -> None:
    """Raise NotForGuests if the user is a guest of the session's workspace: guests cannot choose models or agents."""
    if is_guest_in(user, session):
        raise NotForGuests


def is_guest_in(user: User, session: Session) -> bool:
    """Return whether a user is a guest of the session's workspace."""
    guests = Membership.objects.filter(user=user, workspace=session.workspace_id, role=Membership.Role.GUEST)
    return guests.exists()


def session_to_schedule(user: User, session_id: str) -> tuple[Session, SessionRole]:
    """Fetch a session in which a user may have schedules, as an editor who is not a guest of its workspace.

    Raise NoSuchSession, Forbidden.
    """
    session, role = session_for(user, session_id, SessionRole.EDITOR)
    require_no_guest(user, session)
    return session, role


def may_schedule(user: User, session: Session) -> bool:
    """Return whether a user may have schedules in a session. Each run of a schedule checks this again."""
    role = role_in(user, session) if user.is_active else None
    return role is not None and role.covers(SessionRole.EDITOR) and not is_guest_in(user, session)


def schedule_for(user: User, session_id: str, schedule_id: str, *, only_own: bool) -> Schedule:
    """Fetch a schedule that a user may change, including removed ones.

    A schedule sends messages in its owner's name, so only its owner may change it. Unless `only_own`, the session's
    owner may turn it off, remove and restore it, too. Raise NoSuchSession, NoSuchSchedule, Forbidden.
    """
    session, role = session_to_schedule(user, session_id)
    known = Schedule.objects.filter(session=session, pk=schedule_id).select_related("session", "owner")
    row = known.first() if ids.may_be_one(schedule_id) else None
    if row is None:
        raise NoSuchSchedule
    if row.owner_id != user.pk and (only_own or role != SessionRole.OWNER):
        raise Forbidden(
            _("Only the person who created this schedule can do that, because it sends messages in their name.")
        )
    return row


def person_for(viewer: User, user_id: int) -> User | None:
    """Fetch a user if the viewer may see them, because they share a workspace or a session. Otherwise return None."""
    if user_id == viewer.pk:
        return viewer
    seen = sessions_of(viewer).order_by()
    known = (
        Q(memberships__workspace__in=memberships_of(viewer).values("workspace"))
        | Q(sessions__in=seen.values("pk"))
        | Q(shares__session__in=seen.values("pk"))
    )
    return User.objects.filter(known, pk=user_id).first()


def deleted_sessions_of(user: User) -> QuerySet[Session]:
    """Return the deleted sessions that a user may restore: their own, except those being written or erased."""
    deleted = Session.objects.filter(owner=user, owner__is_active=True, status=Session.Status.DELETED)
    return deleted.filter(building_until=None)


def deleted_session_for(user: User, session_id: str) -> Session:
    """Fetch a deleted session that a user may restore. Raise NoSuchSession."""
    session = deleted_sessions_of(user).filter(pk=session_id).first() if ids.may_be_one(session_id) else None
    if session is None:
        raise NoSuchSession
    return session


def session_for_staff(
    user: User | AnonymousUser, session_id: str, *, needs_change: bool, is_deleted: bool = False
) -> Session:
    """Fetch any session, including deleted ones, for staff with the admin's permissions.

    `is_deleted` allows changes of a deleted session. Raise NoSuchSession, and Forbidden for users without permission
    and for other changes of deleted sessions.
    """
    if not isinstance(user, User) or not is_session_staff(user, needs_change=needs_change):
        raise Forbidden(_("You don’t have permission to do that in the admin."))
    sessions = Session.objects.select_related("owner", "workspace", "run", "parent_session").filter(building_until=None)
    session = sessions.filter(pk=session_id).first() if ids.may_be_one(session_id) else None
    if session is None:
        raise NoSuchSession
    if needs_change and not is_deleted and session.status == Session.Status.DELETED:
        raise Forbidden(_("This session is deleted. It can be viewed but not changed."))
    return session


def is_session_staff(user: User, *, needs_change: bool) -> bool:
    """Return whether a user is staff with the permission to view sessions, or to change them if `needs_change`."""
    permissions = ["chat.change_session"] if needs_change else ["chat.view_session", "chat.change_session"]
    return user.is_staff and any(map(user.has_perm, permissions))


def role_in(user: User, session: Session) -> SessionRole | None:
    """Return a user's role in a session that is not deleted, or None if they have no access."""
    if session.owner_id == user.pk:
        return SessionRole.OWNER
    found = _ROLES_SHARED.read(user.pk, session.pk)
    if session.workspace_role:
        found += _ROLES_OPEN.read(user.pk, session.pk)
    return max(map(SessionRole, found), key=lambda role: role.rank, default=None)


def roles(pairs: Iterable[tuple[int, str]]) -> dict[tuple[int, str], SessionRole]:
    """Return the roles for pairs of user id and session id, in two or three queries.

    Pairs without access are missing.
    """
    pairs = set(pairs)
    user_ids, session_ids = {user for user, _session in pairs}, {session for _user, session in pairs}
    shared = shares().filter(user__in=user_ids, session__in=session_ids).values_list("user_id", "session_id", "role")
    sessions = Session.objects.filter(pk__in=session_ids).exclude(status=Session.Status.DELETED).order_by()
    rows = list(sessions.only("owner_id", "workspace_id", "workspace_role").annotate(is_owned=F("owner__is_active")))
    given = [*shared, *_roles_of_members(user_ids, [row for row in rows if row.workspace_role])]
    found: dict[tuple[int, str], SessionRole] = {}
    for user, session, role in sorted(given, key=lambda each: SessionRole(each[2]).rank):
        found[user, session] = SessionRole(role)
    found.update({(row.owner_id, row.pk): SessionRole.OWNER for row in rows if row.is_owned})
    return {pair: role for pair, role in found.items() if pair in pairs}


def _roles_of_members(users: set[int], opened: list[Session]) -> list[tuple[int, str, str]]:
    """Return user id, session id and role of users whose role comes from sessions that are open to their workspace."""
    if not opened:
        return []
    people = users.union(session.owner_id for session in opened)
    members = Membership.objects.filter(workspace__in={session.workspace_id for session in opened}, user__in=people)
    members = members.exclude(role=Membership.Role.GUEST)
    is_active = {
        (user, place): active for user, place, active in members.values_list("user", "workspace", "user__is_active")
    }
    return [
        (user, session.pk, session.workspace_role)
        for session in opened
        if (session.owner_id, session.workspace_id) in is_active
        for user in users
        if is_active.get((user, session.workspace_id))
    ]


def shares() -> QuerySet[Share]:
    """Return valid shares: the user is active and still in the workspace, and the session is not deleted."""
    valid = Share.objects.filter(user__is_active=True, user__memberships__workspace=F("session__workspace"))
    return valid.exclude(session__status=Session.Status.DELETED)


# The queries of each request and each socket.


def _visible(user_id: int, session_id: str) -> QuerySet[Session]:
    return sessions_of(User(pk=user_id)).filter(pk=session_id)


def _roles_shared(user_id: int, session_id: str) -> QuerySet[Share, str]:
    return shares().filter(session=session_id, user=user_id).values_list("role", flat=True)


def _roles_open(user_id: int, session_id: str) -> QuerySet[Session, str]:
    sessions = Session.objects.filter(open_to(User(pk=user_id)), pk=session_id).exclude(status=Session.Status.DELETED)
    return sessions.values_list("workspace_role", flat=True)


_VISIBLE = Composed(_visible)
_ROLES_SHARED = Composed(_roles_shared)
_ROLES_OPEN = Composed(_roles_open)


def may_open_in_admin(user: User | AnonymousUser, model: type[Model]) -> bool:
    """Return whether a member of staff may open the pages of a model in the admin."""
    app, name = model._meta.app_label, model._meta.model_name
    return user.has_perm(f"{app}.view_{name}") or user.has_perm(f"{app}.change_{name}")
