"""The one gate through which every session is fetched."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import AnonymousUser
from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext as _

from chat import ids
from chat.errors import Forbidden, NoSuchSession, NoSuchWorkspace, NotForGuests
from chat.models import Membership, Session, SessionRole, Share, User, Workspace


def sessions_of(user: User | AnonymousUser) -> QuerySet[Session]:
    """All sessions that the user may see: their own, and those shared with them; none that is deleted.

    Whether they are active is asked of their row: a socket knows them as they were when it was opened.
    """
    if not isinstance(user, User):
        return Session.objects.none()
    shared = _shares().filter(user=user).values("session")
    sessions = Session.objects.filter(Q(owner=user, owner__is_active=True) | Q(pk__in=shared))
    return sessions.exclude(status=Session.Status.DELETED)


def session_for(
    user: User | AnonymousUser, session_id: str, needs: SessionRole = SessionRole.VIEWER
) -> tuple[Session, SessionRole]:
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


def memberships_of(user: User) -> QuerySet[Membership]:
    """Return the memberships by which a user is in a workspace as a whole; guests see single sessions only."""
    return Membership.objects.filter(user=user).exclude(role=Membership.Role.GUEST)


def workspace_for(user: User, workspace_id: int | None) -> Workspace:
    """Fetch a workspace for a member of it who is no guest. Raises NoSuchWorkspace, also for None: that was no id."""
    mine = memberships_of(user).values("workspace")
    workspace = Workspace.objects.filter(pk=workspace_id, pk__in=mine).first() if workspace_id else None
    if workspace is None:
        raise NoSuchWorkspace
    return workspace


def managed_workspaces(user: User) -> QuerySet[Workspace]:
    """Return the workspaces whose guests and members a user manages: as their owner or admin."""
    managers = (Membership.Role.OWNER, Membership.Role.ADMIN)
    return Workspace.objects.filter(pk__in=memberships_of(user).filter(role__in=managers).values("workspace"))


def may_begin_sessions(user: User) -> bool:
    """Return whether a user may start sessions anywhere; who is only a guest, or came as one, may not."""
    return memberships_of(user).exists() or _may_own_workspace(user)


def require_no_guest(user: User, session: Session) -> None:
    """Raise NotForGuests for guests of the session's workspace: they use what the session has, and choose nothing."""
    if is_guest_in(user, session):
        raise NotForGuests


def is_guest_in(user: User, session: Session) -> bool:
    """Return whether a user is in a session as a guest of its workspace."""
    guests = Membership.objects.filter(user=user, workspace=session.workspace_id, role=Membership.Role.GUEST)
    return guests.exists()


def person_for(viewer: User, user_id: int) -> User | None:
    """Fetch another user for somebody who may know them: of a workspace of theirs, or in a session that both see."""
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
    """Return whether a user without a membership may get a workspace of their own, as their row says now."""
    return User.objects.filter(pk=user.pk, can_own_workspace=True).exists()


def deleted_sessions_of(user: User) -> QuerySet[Session]:
    """Return the deleted sessions that the user may restore: their own, none that is being written or erased."""
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
        raise Forbidden(_("You don’t have permission to do that in the admin."))
    sessions = Session.objects.select_related("owner", "workspace", "run", "parent_session").filter(building_until=None)
    session = sessions.filter(pk=session_id).first() if ids.may_be_one(session_id) else None
    if session is None:
        raise NoSuchSession
    if needs_change and not is_deleted and session.status == Session.Status.DELETED:
        raise Forbidden(_("This session is deleted. It can be viewed but not changed."))
    return session


def role_in(user: User, session: Session) -> SessionRole | None:
    """The user's role in a session that is not deleted; None for strangers."""
    if session.owner_id == user.pk:
        return SessionRole.OWNER
    share = _shares().filter(session=session, user=user).first()
    return SessionRole(share.role) if share else None


def roles(pairs: Iterable[tuple[int, str]]) -> dict[tuple[int, str], SessionRole]:
    """The present roles of many (user id, session id) pairs, in two queries.

    Strangers and inactive people are missing.
    """
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
