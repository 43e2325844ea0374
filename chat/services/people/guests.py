"""Guests of a workspace. They stay as long as a session in it is shared with them, unless they become members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

from django.db import transaction
from django.db.models import Count, F, Q, QuerySet
from django.utils.translation import gettext as _

from chat.access import may, workspaces_where
from chat.bus.events import AccessChanged
from chat.errors import NoSuchWorkspace, ServiceError
from chat.models import Membership, Share, User, Workspace
from chat.permissions import Permission
from chat.services.people import workspace_invitations
from chat.services.people.security_log import Kind, record
from chat.services.sessions.replies import follow_people_in_workspace_later
from chat.services.transaction import notify_access_changed, publish_on_commit

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

Role = Membership.Role


def admit(*, workspace_id: int, user: User) -> None:
    """Make a user a guest of a workspace, unless they are in it already, in the caller's transaction.

    Their older shares in the workspace end, because the invitation is for one session.
    """
    _membership, is_new = Membership.objects.get_or_create(
        workspace_id=workspace_id, user=user, defaults={"role": Role.GUEST}
    )
    if is_new:
        Share.objects.filter(session__workspace=workspace_id, user=user).delete()


def end_memberships(*, workspace_id: int, user_ids: Iterable[int]) -> None:
    """Remove users from the workspace if they are guests, and no session in it is shared with them."""
    ids = set(user_ids)
    still_shared = Share.objects.filter(session__workspace=workspace_id, user__in=ids).values("user")
    guests = Membership.objects.filter(workspace=workspace_id, user__in=ids, role=Role.GUEST)
    for membership in guests.exclude(user__in=still_shared):
        membership.delete()


class Counted(TypedDict):
    session_count: int


def guests_managed_by(user: User) -> QuerySet[WithAnnotations[Membership, Counted]]:
    """Return the guests of workspaces that a user manages, with user, workspace and the number of their sessions."""
    guests = Membership.objects.filter(workspace__in=workspaces_where(user, Permission.MANAGE_MEMBERS), role=Role.GUEST)
    is_here = Q(user__shares__session__workspace=F("workspace"))
    guests = guests.select_related("user", "workspace").annotate(session_count=Count("user__shares", filter=is_here))
    return guests.order_by("workspace", "user__display_name", "user__username")


@transaction.atomic
def make_member(*, author: User, workspace_id: int, user_id: int) -> Membership:
    """Make a guest a member of a workspace that the author manages.

    Raise NoSuchWorkspace, and ServiceError if the user is not a guest of it.
    """
    if not may(author, Permission.MANAGE_MEMBERS, workspace_id):
        raise NoSuchWorkspace
    guests = Membership.objects.filter(workspace=workspace_id, user=user_id, role=Role.GUEST)
    if guests.update(role=Role.MEMBER) != 1:
        raise ServiceError("not_a_guest", _("This person is no longer a guest of the workspace."))
    record(Kind.GUEST_PROMOTED, actor=author, person=user_id, target=Workspace(pk=workspace_id))
    notify_access_changed(user_id, workspace_id)
    follow_people_in_workspace_later(workspace_id, user_id)
    return Membership.objects.select_related("user", "workspace").get(workspace=workspace_id, user=user_id)


@transaction.atomic
def remove(*, author: User, workspace_id: int, user_id: int) -> int:
    """Remove a guest from a workspace that the author manages, with all shares in it. Raise as `make_member` does.

    Invitation links to the workspace and to these sessions end, because the guest may know one. Return the number of
    links to the workspace that were valid.
    """
    if not may(author, Permission.MANAGE_MEMBERS, workspace_id):
        raise NoSuchWorkspace
    guest = Membership.objects.filter(workspace=workspace_id, user=user_id, role=Role.GUEST).first()
    if guest is None:
        raise ServiceError("not_a_guest", _("This person is no longer a guest of the workspace."))
    links = workspace_invitations.end_known_links(author=author, workspace=guest.workspace, user_id=user_id)
    follow_people_in_workspace_later(workspace_id, user_id)
    shares = Share.objects.filter(session__workspace=workspace_id, user=user_id)
    for session_id in shares.values_list("session", flat=True):
        publish_on_commit(session_id, [AccessChanged()])
    shares.delete()
    guest.delete()
    record(Kind.MEMBER_REMOVED, actor=author, person=user_id, target=Workspace(pk=workspace_id))
    return links
