"""Members of a workspace: change their roles, remove them, undo a removal, and keep an owner."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.core import signing
from django.db import transaction
from django.utils.translation import gettext as _

from chat.access import workspace_where
from chat.errors import Forbidden, Invalid, ServiceError
from chat.models import Membership, User, Workspace
from chat.permissions import Permission
from chat.services.people import guests, workspace_invitations
from chat.services.people.security_log import Kind, record
from chat.services.runs.lapsing import lapse_in_workspace_later
from chat.services.sessions.replies import follow_people_in_workspace_later
from chat.services.transaction import notify_access_changed

Role = Membership.Role
GIVEN_ROLES = (Role.OWNER, Role.ADMIN, Role.MEMBER)
SALT = "parley.removed-member"
UNDO_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Removed:
    """A removed member. `undo` is a token for `bring_back`, valid for an hour; "" for guests, whose shares are gone.

    `links` is the number of valid invitation links to the workspace that have ended.
    """

    user: User
    undo: str
    links: int


def given_roles(author_role: str) -> list[str]:
    """Return the roles that a manager with this role may give. An admin cannot make owners."""
    return [role for role in GIVEN_ROLES if author_role == Role.OWNER or role != Role.OWNER]


@transaction.atomic
def change_role(*, author: User, workspace_id: int, user_id: int, role: str) -> Membership:
    """Change the role of a member, or make a guest a member.

    Raise NoSuchWorkspace; Forbidden if the author may not manage members, or changes or makes an owner and is not an
    owner; Invalid for a role that cannot be given; ServiceError "last_owner" or "no_such_member".
    """
    if role not in GIVEN_ROLES:
        raise Invalid(_("The role must be owner, admin or member."))
    membership, mine = _lock(author, workspace_id, user_id)
    if membership.role == role:
        return membership
    _require_rank(mine, membership.role, role)
    if membership.role == Role.GUEST:
        membership = guests.make_member(author=author, workspace_id=workspace_id, user_id=user_id)
        if role == Role.MEMBER:
            return membership
    _keep_an_owner(membership)
    before, membership.role = membership.role, Role(role)
    membership.save(update_fields=["role"])
    record(
        Kind.MEMBER_CHANGED, actor=author, person=user_id, target=membership.workspace, before=str(before), role=role
    )
    notify_access_changed(user_id, workspace_id)
    lapse_in_workspace_later(workspace_id)
    return membership


@transaction.atomic
def remove(*, author: User, workspace_id: int, user_id: int) -> Removed:
    """Remove a member or guest; members may remove themselves. Raise as `change_role` does.

    If another user removes the member, invitation links to the workspace and to sessions that were shared with the
    member end, because the member may know one. The member keeps their own sessions. Shares of other users' sessions
    have no effect until the member is back.
    """
    membership, mine = _lock(author, workspace_id, user_id)
    lapse_in_workspace_later(workspace_id)
    if membership.role == Role.GUEST:
        return Removed(membership.user, "", guests.remove(author=author, workspace_id=workspace_id, user_id=user_id))
    links = 0
    if user_id != author.pk:
        _require_rank(mine, membership.role)
        links = workspace_invitations.end_known_links(author=author, workspace=membership.workspace, user_id=user_id)
    _keep_an_owner(membership)
    follow_people_in_workspace_later(workspace_id, user_id)
    undo = signing.dumps([workspace_id, user_id, membership.role], salt=SALT)
    membership.delete()
    record(Kind.MEMBER_REMOVED, actor=author, person=user_id, target=membership.workspace, role=membership.role)
    return Removed(membership.user, undo, links)


@transaction.atomic
def bring_back(*, author: User, workspace_id: int, undo: str) -> Membership:
    """Undo a removal of the last hour, also if the user has come back as a guest in the meantime.

    Raise NoSuchWorkspace, Forbidden, and ServiceError "too_late".
    """
    workspace = workspace_where(author, Permission.MANAGE_MEMBERS, workspace_id)
    try:
        removed_from, user_id, role = signing.loads(undo, salt=SALT, max_age=UNDO_SECONDS)
    except signing.BadSignature:
        raise _too_late() from None
    user = User.objects.filter(pk=user_id, is_active=True).first()
    if removed_from != workspace.pk or user is None:
        raise _too_late()
    _require_rank(_role_of(author, workspace.pk), role)
    membership, is_new = Membership.objects.get_or_create(workspace=workspace, user=user, defaults={"role": role})
    is_guest = membership.role == Role.GUEST
    if is_guest:
        membership.role = Role(role)
        membership.save(update_fields=["role"])
    if is_new or is_guest:
        record(Kind.MEMBER_ADDED, actor=author, person=user, target=workspace, role=role)
        notify_access_changed(user_id, workspace_id)
        follow_people_in_workspace_later(workspace_id, user_id)
    return membership


def owners_after(user: User, leaving: Collection[int] = ()) -> list[tuple[Membership, Membership | None]]:
    """Return a user's memberships as the last active owner of a workspace, each with that of the next owner.

    This is the active admin, or otherwise the active member, who has been in the workspace longest. It is None if there
    is none. Other users who leave at the same time, `leaving`, do not count.
    """
    gone = list(Membership.objects.filter(user__in=leaving).values_list("pk", flat=True)) if leaving else []
    owned = user.memberships.filter(role=Role.OWNER).select_related("workspace")
    return [(each, _next_owner(each, gone)) for each in owned if _is_last(each, gone)]


def hand_over_workspaces(*, user: User, author: User | None) -> None:
    """Give the workspaces of which a user is the last owner a new owner, in the caller's transaction.

    Locks the user's workspaces, so that two owners who are erased at once do not both count on the other.
    """
    owned = user.memberships.filter(role=Role.OWNER).values("workspace")
    list(Workspace.objects.select_for_update().filter(pk__in=owned).order_by("pk"))
    for membership, heir in owners_after(user):
        if heir is None:
            continue
        before, heir.role = heir.role, Role.OWNER
        heir.save(update_fields=["role"])
        workspace, roles = membership.workspace, {"before": str(before), "role": str(heir.role)}
        record(Kind.MEMBER_CHANGED, actor=author, person=heir.user_id, target=workspace, interface=None, **roles)
        notify_access_changed(heir.user_id, membership.workspace_id)


def _next_owner(last: Membership, leaving: Collection[int]) -> Membership | None:
    others = Membership.objects.filter(workspace=last.workspace_id, user__is_active=True)
    others = others.exclude(pk__in=[last.pk, *leaving]).select_related("user").order_by("pk")
    return others.filter(role=Role.ADMIN).first() or others.filter(role=Role.MEMBER).first()


def _lock(author: User, workspace_id: int, user_id: int) -> tuple[Membership, str]:
    """Lock the workspace, so that two owners cannot both leave. Return the membership and the author's role."""
    if author.pk != user_id:
        workspace_where(author, Permission.MANAGE_MEMBERS, workspace_id)
    else:
        workspace_where(author, Permission.SEE_MEMBERS, workspace_id)
    Workspace.objects.select_for_update().get(pk=workspace_id)
    found = Membership.objects.filter(workspace=workspace_id, user=user_id).select_related("user", "workspace").first()
    if found is None:
        raise ServiceError("no_such_member", _("This person is no longer a member of the workspace."))
    return found, _role_of(author, workspace_id)


def _role_of(user: User, workspace_id: int) -> str:
    return Membership.objects.values_list("role", flat=True).get(workspace=workspace_id, user=user)


def _require_rank(mine: str, *roles: str) -> None:
    """Raise Forbidden unless a role permits changes of these roles. Only owners may change and make owners."""
    if mine not in (Role.OWNER, Role.ADMIN):
        raise Forbidden(_("Your role in this workspace doesn’t allow that. Ask an owner or admin."))
    if mine != Role.OWNER and Role.OWNER in roles:
        raise Forbidden(_("Only owners can make or change owners."))


def require_owners(leaving: Collection[int], joining: Collection[Membership]) -> None:
    """Raise ServiceError "last_owner" if a workspace would have members but no owner after a change of memberships.

    `leaving` are the ids of those that end, `joining` those that are not saved yet.
    """
    for membership in Membership.objects.filter(pk__in=leaving, role=Role.OWNER).order_by("workspace"):
        workspace = Workspace.objects.select_for_update().get(pk=membership.workspace_id)
        new = [each for each in joining if each.workspace_id == workspace.pk]
        left = workspace.memberships.exclude(pk__in=leaving)
        if any(each.role == Role.OWNER and each.user.is_active for each in new):
            continue
        if (new or left.exists()) and not left.filter(role=Role.OWNER, user__is_active=True).exists():
            raise ServiceError("last_owner", _("A workspace needs an owner. Add another owner first."))


def _is_last(owner: Membership, leaving: Collection[int] = ()) -> bool:
    others = Membership.objects.filter(workspace=owner.workspace_id, role=Role.OWNER, user__is_active=True)
    return not others.exclude(pk__in=[owner.pk, *leaving]).exists()


def _keep_an_owner(membership: Membership) -> None:
    if membership.role == Role.OWNER and _is_last(membership):
        raise ServiceError("last_owner", _("A workspace needs an owner. Make another member an owner first."))


def _too_late() -> ServiceError:
    return ServiceError("too_late", _("This can’t be undone anymore."))
