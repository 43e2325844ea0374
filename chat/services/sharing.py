"""Who else is in a session: shares with members of its workspace, and invitations for those who are not yet.

Who has left a workspace keeps their sessions in it, and may close them to others, but lets nobody in any more.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.events import AccessChanged
from chat.live.publish import publish
from chat.models import Invitation, Membership, Role, Session, Share, User
from chat.services.access import workspace_for
from chat.services.errors import Invalid, Refused
from chat.services.security_log import Kind, record
from chat.services.tokens import hashed

INVITATION_LIFE = timedelta(days=7)
GIVEN_ROLES = (Role.VIEWER, Role.EDITOR)


@dataclass(frozen=True, slots=True)
class Member:
    """A person in a session."""

    user: User
    role: Role


def members(session: Session) -> list[Member]:
    """Everybody in a session, its owner first."""
    shares = Share.objects.filter(session=session).select_related("user").order_by("created_at")
    return [Member(session.owner, Role.OWNER), *(Member(share.user, Role(share.role)) for share in shares)]


def candidates(session: Session) -> QuerySet[User]:
    """Members of the workspace with whom the session is not shared yet; nobody where its owner has left that."""
    inside = Share.objects.filter(session=session).values("user")
    theirs = Membership.objects.filter(workspace=session.workspace_id, user=session.owner_id).values("workspace")
    people = User.objects.filter(memberships__workspace__in=theirs, is_active=True)
    return people.exclude(pk=session.owner_id).exclude(pk__in=inside).order_by("display_name", "username")


@transaction.atomic
def share(*, session: Session, author: User, user: User, role: str) -> None:
    """Open a session to a member of its workspace, or change the role they have in it. Raises Refused."""
    given = _given(role)
    if user.pk == session.owner_id:
        raise Refused("is_owner", _("The owner of a session has every right in it already."))
    workspace_for(author, session.workspace_id)
    if not Membership.objects.filter(workspace=session.workspace_id, user=user).exists():
        raise Refused(
            "not_a_member", _("Only members of the workspace can be let in. Send an invitation link instead.")
        )
    Share.objects.update_or_create(session=session, user=user, defaults={"role": given})
    record(Kind.SHARED, actor=author, person=user, target=session, role=given)
    _access_changed(session)


@transaction.atomic
def unshare(*, session: Session, author: User, user: User) -> None:
    """Close a session to somebody; their open pages lose it at once (LIVE-06).

    Its invitation links end as well: one of them may be how they came, and would let them in again.
    """
    taken, _kinds = Share.objects.filter(session=session, user=user).delete()
    if taken:
        record(Kind.UNSHARED, actor=author, person=user, target=session)
    revoke_invitations(session=session, author=author)
    _access_changed(session)


@transaction.atomic
def invite(*, session: Session, author: User, role: str) -> str:
    """Make an invitation link's token; it works for a week, for as many people as it is given to.

    Raises NoSuchWorkspace.
    """
    workspace_for(author, session.workspace_id)
    token = secrets.token_urlsafe(24)
    invitation = Invitation.objects.create(
        session=session,
        role=_given(role),
        token_hash=hashed(token),
        created_by=author,
        expires_at=timezone.now() + INVITATION_LIFE,
    )
    record(
        Kind.INVITATION_MADE, actor=author, person=session.owner_id, target=session, invitation=invitation.pk, role=role
    )
    return token


@transaction.atomic
def revoke_invitations(*, session: Session, author: User) -> int:
    """End all of a session's invitation links; returns how many there were."""
    count, _kinds = Invitation.objects.filter(session=session).delete()
    if count:
        record(Kind.INVITATION_ENDED, actor=author, person=session.owner_id, target=session, count=count)
    return count


def invitations(session: Session) -> list[Invitation]:
    """The links that still work, the newest first."""
    valid = valid_invitations().filter(session=session)
    return list(valid.select_related("created_by").order_by("-created_at"))


def valid_invitations() -> QuerySet[Invitation]:
    """All that let somebody in now: none of those who may not come in, or have left the workspace, themselves."""
    hosts = {"created_by__is_active": True, "created_by__memberships__workspace": F("session__workspace")}
    valid = Invitation.objects.filter(expires_at__gt=timezone.now(), **hosts)
    return valid.exclude(session__status=Session.Status.DELETED)


@transaction.atomic
def end_invitation(*, session: Session, author: User, invitation_id: int) -> None:
    """End one invitation link; that it is over already is as good."""
    count, _kinds = Invitation.objects.filter(session=session, pk=invitation_id).delete()
    if count:
        record(Kind.INVITATION_ENDED, actor=author, person=session.owner_id, target=session, invitation=invitation_id)


def invitation_for(token: str) -> Invitation:
    """Find a valid invitation. Raises Refused: unknown, revoked or too old."""
    found = valid_invitations().filter(token_hash=hashed(token))
    invitation = found.select_related("session", "created_by").first()
    if invitation is None:
        raise Refused("no_such_invitation", _("This invitation is not valid any more. Ask for a new one."))
    return invitation


@transaction.atomic
def accept(*, token: str, user: User) -> Session:
    """Let somebody in by an invitation; it never lowers a role that they have. Raises Refused."""
    invitation = invitation_for(token)
    session = invitation.session
    if user.pk == session.owner_id:
        return session
    Membership.objects.get_or_create(workspace_id=session.workspace_id, user=user)
    entry, made = Share.objects.get_or_create(session=session, user=user, defaults={"role": invitation.role})
    if not made and not Role(entry.role).covers(Role(invitation.role)):
        entry.role = invitation.role
        entry.save(update_fields=["role"])
    record(
        Kind.INVITATION_USED, actor=user, person=user, target=session, invitation=invitation.pk, role=invitation.role
    )
    _access_changed(session)
    return session


def _given(role: str) -> Role:
    if role not in GIVEN_ROLES:
        raise Invalid(_("A session is shared with viewers or editors."))
    return Role(role)


def _access_changed(session: Session) -> None:
    session_id = session.pk
    transaction.on_commit(lambda: publish(session_id, [AccessChanged()]))
