"""Invite users to a workspace as members, with links that its owners and admins make."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.access import memberships_of, workspace_where
from chat.errors import ServiceError
from chat.limits.rates import limited
from chat.models import Membership, User, Workspace, WorkspaceInvitation
from chat.permissions import Permission, roles_with
from chat.services.people.invitation_links import end_links_to_shared, new_link
from chat.services.people.secrets import hash_token
from chat.services.people.security_log import Kind, record
from chat.services.sessions.replies import follow_people_in_workspace_later
from chat.services.transaction import notify_access_changed

Role = Membership.Role


@limited("invitations", by="author")
@transaction.atomic
def invite(*, author: User, workspace_id: int, uses: int = 1) -> tuple[WorkspaceInvitation, str]:
    """Create a link that makes a number of users members, valid for a week; return it with its token.

    Raise NoSuchWorkspace, Forbidden, and Invalid for a number below 1 or above 100.
    """
    workspace = workspace_where(author, Permission.MANAGE_MEMBERS, workspace_id)
    token, columns = new_link(author, uses)
    invitation = WorkspaceInvitation.objects.create(workspace=workspace, **columns)
    record(Kind.INVITATION_MADE, actor=author, target=workspace, invitation=invitation.pk, role=Role.MEMBER.value)
    return invitation, token


def invitations(workspace: Workspace) -> list[WorkspaceInvitation]:
    """Return the valid links of a workspace, the newest first."""
    valid = valid_invitations().filter(workspace=workspace)
    return list(valid.select_related("created_by").order_by("-created_at", "-pk"))


def valid_invitations() -> QuerySet[WorkspaceInvitation]:
    """Return the valid links: not expired, not used up, and by creators who still manage the members."""
    managers = Membership.objects.filter(
        workspace=OuterRef("workspace"), user=OuterRef("created_by"), role__in=roles_with(Permission.MANAGE_MEMBERS)
    )
    return WorkspaceInvitation.objects.filter(
        Exists(managers), uses__lt=F("max_uses"), expires_at__gt=timezone.now(), created_by__is_active=True
    )


@transaction.atomic
def end_invitation(*, author: User, workspace_id: int, invitation_id: int) -> None:
    """End one link. No effect if it has ended already. Raise NoSuchWorkspace, Forbidden."""
    workspace = workspace_where(author, Permission.MANAGE_MEMBERS, workspace_id)
    if WorkspaceInvitation.objects.filter(workspace=workspace, pk=invitation_id).delete()[0]:
        record(Kind.INVITATION_ENDED, actor=author, target=workspace, invitation=invitation_id)


@transaction.atomic
def revoke_invitations(*, author: User, workspace_id: int) -> None:
    """End all links of a workspace. Raise NoSuchWorkspace, Forbidden."""
    end_all(author=author, workspace=workspace_where(author, Permission.MANAGE_MEMBERS, workspace_id))


def end_known_links(*, author: User, workspace: Workspace, user_id: int) -> int:
    """End the links that a removed user may know: those to the workspace, and to sessions shared with the user.

    Return the number of links to the workspace that were valid. Must be called in a transaction, before the shares are
    deleted.
    """
    valid = valid_invitations().filter(workspace=workspace).count()
    end_all(author=author, workspace=workspace)
    end_links_to_shared(author=author, workspace_id=workspace.pk, user_id=user_id)
    return valid


def end_all(*, author: User, workspace: Workspace) -> None:
    """End all links of a workspace, in the caller's transaction."""
    count = WorkspaceInvitation.objects.filter(workspace=workspace).delete()[0]
    if count:
        record(Kind.INVITATION_ENDED, actor=author, target=workspace, count=count)


def invitation_for(token: str) -> WorkspaceInvitation | None:
    """Return a valid link, or None if it is unknown, ended, used up or expired."""
    found = valid_invitations().filter(token_hash=hash_token(token))
    return found.select_related("workspace", "created_by").first()


def workspace_by_used_link(token: str, user: User) -> Workspace | None:
    """Return the workspace of a link, even of a used one, if the user is a member of it."""
    linked = WorkspaceInvitation.objects.filter(token_hash=hash_token(token)).values("workspace")
    mine = memberships_of(user).filter(workspace__in=linked)
    return Workspace.objects.filter(pk__in=mine.values("workspace")).first()


@transaction.atomic
def accept(*, token: str, user: User) -> Workspace:
    """Make a user a member of a link's workspace. Guests keep their shares.

    For members the link does not count as used. Raise ServiceError.
    """
    invitation = invitation_for(token)
    if invitation is None:
        raise no_such_invitation()
    workspace = invitation.workspace
    present = Membership.objects.filter(workspace=workspace, user=user).first()
    if present is not None and present.role != Role.GUEST:
        return workspace
    # The condition uses only the link's own columns, so that two simultaneous requests cannot both take the last use.
    if WorkspaceInvitation.objects.filter(pk=invitation.pk, uses__lt=F("max_uses")).update(uses=F("uses") + 1) != 1:
        raise no_such_invitation()
    Membership.objects.update_or_create(workspace=workspace, user=user, defaults={"role": Role.MEMBER})
    role = Role.MEMBER.value
    record(Kind.INVITATION_USED, actor=user, person=user, target=workspace, invitation=invitation.pk, role=role)
    record(Kind.MEMBER_ADDED, actor=invitation.created_by, person=user, target=workspace, role=role)
    notify_access_changed(user.pk, workspace.pk)
    follow_people_in_workspace_later(workspace.pk, user.pk)
    return workspace


def no_such_invitation() -> ServiceError:
    return ServiceError("no_such_invitation", _("This invitation has expired. Ask for a new one."))
