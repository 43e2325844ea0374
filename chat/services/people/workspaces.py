"""A user's workspaces: list them, get the current one, switch to another, and rename one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from chat import names
from chat.access import memberships_of, workspace_for, workspace_where
from chat.errors import Invalid, NotForGuests, ServiceError
from chat.models import Membership, User, Workspace
from chat.overrides.composed_queries import Composed
from chat.permissions import Permission, roles_with
from chat.queries.session_list import Within, unread_sessions
from chat.services.people.security_log import Kind, record

MAX_NAME_LENGTH = 120


@dataclass(frozen=True, slots=True)
class ListedWorkspace:
    """A workspace in a member's list, with their role. `unread` is True if it has unread messages and is not shown."""

    id: int
    name: str
    unread: bool
    role: str

    @property
    def is_managed(self) -> bool:
        """True if the member may manage what the workspace's agents may do."""
        return self.role in roles_with(Permission.MANAGE_RULES)


@dataclass(frozen=True, slots=True)
class UserWorkspaces:
    """A user's workspaces, the oldest first, and the shown one (None if there is none)."""

    mine: tuple[ListedWorkspace, ...]
    here: ListedWorkspace | None

    @property
    def several(self) -> bool:
        """True if the user has several workspaces. The pages of other users do not mention workspaces."""
        return len(self.mine) > 1

    @property
    def unread(self) -> bool:
        """True if another workspace has unread messages."""
        return any(workspace.unread for workspace in self.mine)

    @property
    def within(self) -> Within | None:
        """The filter for the sessions of the shown workspace, or None for all sessions.

        The oldest workspace also lists sessions in workspaces of which the user is a guest or which the user has left.
        """
        if self.here is None or not self.several:
            return None
        is_oldest = self.here == self.mine[0]
        return Within(self.here.id, tuple(workspace.id for workspace in self.mine) if is_oldest else ())


@dataclass(frozen=True, slots=True)
class UserMemberships:
    """A user's memberships, including those as a guest, the oldest first. `current` is the current workspace's id.

    `may_begin` is True if the user may start sessions.
    """

    memberships: list[Membership]
    current: int | None
    may_begin: bool


def memberships_of_user(user: User) -> UserMemberships:
    """Return a user's memberships and whether they may start sessions, with one query."""
    found = list(Membership.objects.filter(user=user).select_related("workspace").order_by("pk"))
    member_of = [each.workspace_id for each in found if each.role != Membership.Role.GUEST]
    current = user.workspace_id if user.workspace_id in member_of else next(iter(member_of), None)
    return UserMemberships(found, current, bool(member_of) or user.can_own_workspace)


def listed_workspaces(user: User, wanted: int | None = None) -> UserWorkspaces:
    """Return a user's workspaces. The shown one is `wanted` if the user is in it, otherwise their current one.

    Takes one query, and another one for unread messages if there are several workspaces.
    """
    shown = wanted or user.workspace_id
    rows = _MINE.read(user.pk)
    unread = frozenset(_WITH_NEWS.read(user.pk, *([shown] if shown else []))) if len(rows) > 1 else frozenset()
    mine = [ListedWorkspace(workspace, name, workspace in unread, role) for workspace, name, role in rows]
    return _with_shown(mine, (wanted, user.workspace_id))


def _mine(user_id: int) -> QuerySet[Membership, tuple[int, str, str]]:
    mine = memberships_of(User(pk=user_id)).order_by("pk")
    return mine.values_list("workspace_id", "workspace__name", "role")


def _with_news(user_id: int, shown: int = 0) -> QuerySet[Membership, int]:
    """Return the user's workspaces except `shown` that list unread sessions, as defined by `UserWorkspaces.within`."""
    user = User(pk=user_id)
    unread = unread_sessions(user)
    older = memberships_of(user).filter(pk__lt=OuterRef("pk"))
    left = unread.exclude(workspace__in=memberships_of(user).values("workspace"))
    has_news = Q(Exists(unread.filter(workspace=OuterRef("workspace")))) | (~Exists(older) & Exists(left))
    found = memberships_of(user).exclude(workspace=shown) if shown else memberships_of(user)
    return found.filter(has_news).values_list("workspace_id", flat=True)


_MINE = Composed(_mine)
_WITH_NEWS = Composed(_with_news)


def _with_shown(mine: list[ListedWorkspace], preferred: tuple[int | None, ...]) -> UserWorkspaces:
    """Return the workspaces, with the first of the preferred ones that the user is in, or the oldest one, shown."""
    known = {each.id: each for each in mine}
    here = next((known[each] for each in preferred if each in known), mine[0] if mine else None)
    return UserWorkspaces(
        tuple(each if each != here else _without_mark(each) for each in mine), here and _without_mark(here)
    )


def _without_mark(workspace: ListedWorkspace) -> ListedWorkspace:
    return replace(workspace, unread=False)


@transaction.atomic
def current_workspace(user: User) -> Workspace:
    """Return the workspace for `user`'s new sessions: their current one.

    If they are not a member of it, it is their oldest one, or a new one if they have none. Workspaces in which they are
    a guest do not count. Raise Forbidden for users who may not start sessions.
    """
    locked = User.objects.select_for_update().get(pk=user.pk)  # two simultaneous first requests create one workspace
    mine = list(memberships_of(user).select_related("workspace").order_by("pk"))
    if mine:
        return next((each for each in mine if each.workspace_id == locked.workspace_id), mine[0]).workspace
    if not locked.can_own_workspace:
        raise NotForGuests
    workspace = Workspace.objects.create(name=_("Home"))
    Membership.objects.create(workspace=workspace, user=user, role=Membership.Role.OWNER)
    return workspace


def members_of(user: User, workspace_id: int) -> list[Membership]:
    """Return a workspace's members and guests, sorted by name. Raise NoSuchWorkspace unless `user` is a member."""
    workspace = workspace_for(user, workspace_id)
    members = Membership.objects.filter(workspace=workspace, user__is_active=True).select_related("user")
    return sorted(members, key=lambda each: (each.user.sender.casefold(), each.user_id))


@transaction.atomic
def enter(*, user: User, workspace_id: int | None) -> None:
    """Set the user's current workspace, for pages and the API. Raise NoSuchWorkspace."""
    workspace = workspace_for(user, workspace_id)
    if user.workspace_id != workspace.pk:
        user.workspace = workspace
        user.save(update_fields=["workspace"])


@transaction.atomic
def rename(*, author: User, workspace_id: int, name: str, seen: str | None = None) -> Workspace:
    """Rename a workspace. Members see the new name on the next page that they open.

    `seen` is the name that the user has changed. Raise NoSuchWorkspace, Forbidden, Invalid for a name that is empty or
    too long, and ServiceError "stale" if the workspace has neither the name `seen` nor the new one.
    """
    managed = workspace_where(author, Permission.RENAME_WORKSPACE, workspace_id)
    workspace = Workspace.objects.select_for_update().get(pk=managed.pk)
    cleaned = names.clean(name)
    if seen not in (None, workspace.name) and cleaned != workspace.name:
        words = _("The name has changed since you opened the page. Save again to replace “%(name)s”.")
        raise ServiceError("stale", words % {"name": workspace.name})
    if not 0 < len(cleaned) <= MAX_NAME_LENGTH:
        raise Invalid(_("Enter a name of up to %(count)d characters.") % {"count": MAX_NAME_LENGTH})
    if workspace.name != cleaned:
        workspace.name = cleaned
        workspace.save(update_fields=["name"])
        record(Kind.WORKSPACE_RENAMED, actor=author, target=workspace)
    return workspace
