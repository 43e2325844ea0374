"""Share sessions with members and guests of their workspace, and with other users by invitation links.

Users who left a workspace keep their sessions in it. They can remove shares, but cannot add any.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.access import is_guest_in, is_member, memberships_of, sessions_of, shares, workspace_for, workspace_where
from chat.bus.events import AccessChanged
from chat.errors import Invalid, ServiceError
from chat.limits.rates import limited
from chat.models import ChatMessage, Invitation, Membership, Session, SessionRole, Share, User, UserSessionState
from chat.permissions import Permission
from chat.queries.session_people import people_of
from chat.services.people import guests
from chat.services.people.following import copy_people_below, require_own_people
from chat.services.people.invitation_links import new_link
from chat.services.people.secrets import hash_token
from chat.services.people.security_log import Kind, record
from chat.services.runs.lapsing import lapse_in_session_later
from chat.services.sessions import replies
from chat.services.sessions.fields import change
from chat.services.transaction import SessionTransaction, notify_session_lists, publish_on_commit

GIVEN_ROLES = (SessionRole.VIEWER, SessionRole.EDITOR)
# The numbers of users that the page offers for a link. The first one is preselected.
USES = (1, 5, 10, 25)
UNUSED = Q(max_uses=None) | Q(uses__lt=F("max_uses"))


@dataclass(frozen=True, slots=True)
class Member:
    """A user of a session. `is_guest` is True for guests of the session's workspace.

    `has_access` is False for users whose share is not valid, because they have left the workspace or are not active.
    """

    user: User
    role: SessionRole
    is_guest: bool = False
    has_access: bool = True


def members(session: Session) -> list[Member]:
    """Return the users to whom a session is shared and who have access to it, its owner first.

    The owner is missing if their account is closed.
    """
    return [member for member in present_and_former(session) if member.has_access]


def present_and_former(session: Session) -> list[Member]:
    """Return all users to whom a session is shared, its owner first, including those who have no access now."""
    rows = Share.objects.filter(session=session).select_related("user").order_by("created_at")
    guests = Membership.objects.filter(
        workspace=OuterRef("session__workspace"), user=OuterRef("user"), role=Membership.Role.GUEST
    )
    rows = rows.annotate(is_guest=Exists(guests), is_valid=Exists(shares().filter(pk=OuterRef("pk"))))
    others = (Member(row.user, SessionRole(row.role), row.is_guest, row.is_valid) for row in rows)
    return [Member(session.owner, SessionRole.OWNER, has_access=session.owner.is_active), *others]


def may_open_to_workspace(session: Session, user: User) -> bool:
    """Return whether a session's owner can open it: if they are in its workspace, and no agent's call started it."""
    return not session.caller_session_id and memberships_of(user).filter(workspace=session.workspace_id).exists()


def mentionable(session: Session, viewer: User) -> list[Member]:
    """Return the users who may see a session, its owner first, including members of a workspace to which it is open.

    Guests do not see the members of the workspace, so for them only members who have written in the session are added.
    """
    explicit = members(session)
    if not session.workspace_role:
        return explicit
    others = people_of(session).exclude(pk__in=[member.user.pk for member in explicit])
    if is_guest_in(viewer, session):
        writers = ChatMessage.objects.in_conversation(session.pk).filter(user__isnull=False).values("user")
        others = others.filter(pk__in=writers)
    role = SessionRole(session.workspace_role)
    return [*explicit, *(Member(user, role) for user in others.order_by("display_name", "username"))]


def candidates(session: Session) -> QuerySet[User]:
    """Return the users of the workspace without access to the session; none if its owner has left the workspace."""
    inside = Share.objects.filter(session=session).values("user")
    owner_workspaces = memberships_of(session.owner).filter(workspace=session.workspace_id).values("workspace")
    people = User.objects.filter(memberships__workspace__in=owner_workspaces, is_active=True)
    return people.exclude(pk=session.owner_id).exclude(pk__in=inside).order_by("display_name", "username")


@transaction.atomic
def share(*, session: Session, author: User, user: User, role: str) -> None:
    """Share a session with a member or guest of its workspace, or change their role. Raise ServiceError."""
    given = _parse_role(role)
    require_own_people(session)
    tx = SessionTransaction.lock(session.pk)
    if user.pk == session.owner_id:
        raise ServiceError("is_owner", _("The session owner already has full access."))
    workspace_for(author, session.workspace_id)
    if not Membership.objects.filter(workspace=session.workspace_id, user=user).exists():
        raise ServiceError("not_a_member", _("Only workspace members can be added. Send an invitation link instead."))
    Share.objects.update_or_create(session=session, user=user, defaults={"role": given})
    copy_people_below(session.pk)
    record(Kind.SHARED, actor=author, person=user, target=session, role=given)
    replies.follow_people(tx)
    lapse_in_session_later(session.pk)
    publish_on_commit(session.pk, [AccessChanged()])


@transaction.atomic
def unshare(*, session: Session, author: User, user: User) -> int:
    """Remove a user's share of a session, and close their open pages of it (LIVE-06).

    The session's invitation links end, too, because the user may know one; return how many were valid. Guests leave the
    workspace with their last share. Raise ServiceError.
    """
    require_own_people(session)
    links = valid_invitations().filter(session=session).count()
    tx = SessionTransaction.lock(session.pk)
    taken, _kinds = Share.objects.filter(session=session, user=user).delete()
    copy_people_below(session.pk)
    if taken:
        record(Kind.UNSHARED, actor=author, person=user, target=session)
    guests.end_memberships(workspace_id=session.workspace_id, user_ids=[user.pk])
    revoke_invitations(session=session, author=author)
    replies.follow_people(tx)
    lapse_in_session_later(session.pk)
    publish_on_commit(session.pk, [AccessChanged()])
    return links


@transaction.atomic
def open_to_workspace(*, session: Session, author: User, role: str) -> None:
    """Give all members of the session's workspace a role in it, or no role for "". Users with a share keep theirs.

    Guests of the workspace get no role. Raise ServiceError.
    """
    given = _parse_role(role) if role else ""
    require_own_people(session)
    if given:  # an owner who has left the workspace can still close the session to it
        workspace_for(session.owner, session.workspace_id)
    tx = SessionTransaction.lock(session.pk)
    if tx.session.workspace_role == given:
        return
    states = UserSessionState.objects.filter(session=session.pk)
    notify_session_lists(users=list(states.values_list("user", flat=True)))
    change(tx, author, workspace_role=str(given))
    copy_people_below(session.pk)
    record(Kind.SHARED if given else Kind.UNSHARED, actor=author, target=session, to="workspace", role=str(given))
    replies.follow_people(tx)
    lapse_in_session_later(session.pk)
    publish_on_commit(session.pk, [AccessChanged()])


@limited("invitations", by="author")
@transaction.atomic
def invite(*, session: Session, author: User, role: str, uses: int = 1) -> tuple[Invitation, str]:
    """Create an invitation link for a number of users, valid for a week, and return it with its token.

    Raise NoSuchWorkspace, and ServiceError for a number below 1 or above 100.
    """
    workspace_where(author, Permission.INVITE, session.workspace_id)
    require_own_people(session)
    token, columns = new_link(author, uses)
    invitation = Invitation.objects.create(session=session, role=_parse_role(role), **columns)
    record(
        Kind.INVITATION_MADE, actor=author, person=session.owner_id, target=session, invitation=invitation.pk, role=role
    )
    return invitation, token


@transaction.atomic
def revoke_invitations(*, session: Session, author: User) -> int:
    """End all of a session's invitation links; return how many there were."""
    count, _kinds = Invitation.objects.filter(session=session).delete()
    if count:
        record(Kind.INVITATION_ENDED, actor=author, person=session.owner_id, target=session, count=count)
    return count


def invitations(session: Session) -> list[Invitation]:
    """Return the valid links of a session, the newest first."""
    valid = valid_invitations().filter(session=session)
    return list(valid.select_related("created_by").order_by("-created_at"))


def valid_invitations() -> QuerySet[Invitation]:
    """Return the valid links: not expired, not used up, and by creators who are still members."""
    is_hosted = is_member("created_by", "session__workspace")
    valid = Invitation.objects.filter(UNUSED, is_hosted, expires_at__gt=timezone.now(), created_by__is_active=True)
    return valid.exclude(session__status=Session.Status.DELETED)


@transaction.atomic
def end_invitation(*, session: Session, author: User, invitation_id: int) -> None:
    """End one invitation link. No effect if it has ended already."""
    count, _kinds = Invitation.objects.filter(session=session, pk=invitation_id).delete()
    if count:
        record(Kind.INVITATION_ENDED, actor=author, person=session.owner_id, target=session, invitation=invitation_id)


def invitation_for(token: str) -> Invitation:
    """Return a valid invitation. Raise ServiceError if it is unknown, revoked, used up or expired."""
    found = valid_invitations().filter(token_hash=hash_token(token))
    invitation = found.select_related("session", "created_by").first()
    if invitation is None:
        raise _no_such_invitation()
    return invitation


def session_by_used_link(token: str, user: User) -> Session | None:
    """Return the session of a link, even of a used one, if the user has access to it."""
    found = Invitation.objects.filter(token_hash=hash_token(token)).values("session")
    return sessions_of(user).filter(pk__in=found).first()


@transaction.atomic
def accept(*, token: str, user: User) -> Session:
    """Accept an invitation for a user, as a guest unless they are a member. It never lowers an existing role.

    For users of the session the link only counts as used if it gives them a higher role. Raise ServiceError.
    """
    invitation = invitation_for(token)
    session = invitation.session
    present = shares().filter(session=session, user=user).first()  # former members keep shares without access
    if user.pk == session.owner_id or (present and SessionRole(present.role).covers(SessionRole(invitation.role))):
        return session
    tx = SessionTransaction.lock(session.pk)
    # The condition uses only the link's own columns, so that two simultaneous requests cannot both take the last use.
    if Invitation.objects.filter(UNUSED, pk=invitation.pk).update(uses=F("uses") + 1) != 1:
        raise _no_such_invitation()
    guests.admit(workspace_id=session.workspace_id, user=user)
    Share.objects.update_or_create(session=session, user=user, defaults={"role": invitation.role})
    copy_people_below(session.pk)
    record(
        Kind.INVITATION_USED, actor=user, person=user, target=session, invitation=invitation.pk, role=invitation.role
    )
    replies.follow_people(tx)
    publish_on_commit(session.pk, [AccessChanged()])
    return session


def _parse_role(role: str) -> SessionRole:
    if role not in GIVEN_ROLES:
        raise Invalid(_("The role must be viewer or editor."))
    return SessionRole(role)


def _no_such_invitation() -> ServiceError:
    return ServiceError("no_such_invitation", _("This invitation has expired. Ask for a new one."))
