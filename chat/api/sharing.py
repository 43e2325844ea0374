"""Access to a session: its members and its invitation links."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.conf import settings
from django.http import HttpResponse
from django.urls import reverse
from ninja import Router, Schema
from pydantic import Field

from agents.messages import Json
from chat.api.auth import ApiRequest, session_of
from chat.api.message_schemas import SESSION_ID
from chat.api.parsing import Body, RowId
from chat.api.responses import json_response, no_content
from chat.api.schemas import RoleName
from chat.models import Invitation, SessionRole, User, WorkspaceInvitation
from chat.services.people import sharing
from chat.services.people.invitation_links import MAX_USES

router = Router(tags=["Sharing"])
SharedRole = Literal["viewer", "editor"]
WorkspaceRole = Literal["", "viewer", "editor"]
ROLE = "What they may do: read (`viewer`), or write, too (`editor`)"
USES = "How many users have joined by it"
MOST_USES = "How many may"
MAX_USES_GIVEN = "How many users may join by the link"


class SessionMember(Schema):
    """A user with access to a session."""

    user_id: int
    username: str
    name: str
    role: RoleName
    is_guest: bool = Field(description="Of the workspace")


class SessionMembers(Schema):
    """The owner comes first."""

    members: list[SessionMember]
    workspace_role: WorkspaceRole = Field(
        description="What all other members of the workspace may do in the session; empty: nothing"
    )


class Share(Body):
    role: SharedRole = Field(description=ROLE)


class WorkspaceAccess(Body):
    role: WorkspaceRole = Field(description="Empty: only the session's own members have access")


class InvitationOut(Schema):
    """An invitation link that works. The link itself is returned only when it is made."""

    id: int
    role: SharedRole
    created_by: str
    uses: int = Field(description=USES)
    max_uses: int | None = Field(description=f"{MOST_USES}; null if unlimited, as links made by earlier versions are")
    created_at: datetime
    expires_at: datetime


class Invitations(Schema):
    """The newest first."""

    invitations: list[InvitationOut]


class NewInvitation(Body):
    role: SharedRole = Field(description=ROLE)
    max_uses: int = Field(1, ge=1, le=MAX_USES, description=MAX_USES_GIVEN)


class CreatedInvitation(Schema):
    """Users who accept the link join the session. Parley keeps only a hash of its token."""

    url: str
    token: str
    role: SharedRole
    max_uses: int


class InvitationToken(Body):
    token: str = Field(max_length=100, description="The last part of the link")


class JoinedSession(Schema):
    session: str = Field(examples=[SESSION_ID])


@router.get(
    "/sessions/{session_id}/members",
    response=SessionMembers,
    operation_id="listSessionMembers",
    summary="List the users with access",
)
def list_members(request: ApiRequest, session_id: str) -> HttpResponse:
    """Each user has a role in the session."""
    session = session_of(request, session_id)
    members = [
        {
            "user_id": each.user.pk,
            "username": each.user.username,
            "name": each.user.sender,
            "role": each.role.value,
            "is_guest": each.is_guest,
        }
        for each in sharing.members(session)
    ]
    return json_response(request, {"members": members, "workspace_role": session.workspace_role})


@router.put(
    "/sessions/{session_id}/workspace-access",
    response={204: None},
    operation_id="openToWorkspace",
    summary="Open a session to its workspace",
)
def open_to_workspace(request: ApiRequest, session_id: str, body: WorkspaceAccess) -> HttpResponse:
    """Let all members of the workspace view or edit the session, or end that. Only the owner may."""
    session = session_of(request, session_id, SessionRole.OWNER)
    sharing.open_to_workspace(session=session, author=request.user, role=body.role)
    return no_content()


@router.put(
    "/sessions/{session_id}/members/{user_id}",
    response={204: None},
    operation_id="shareSession",
    summary="Share a session",
)
def share(request: ApiRequest, session_id: str, user_id: RowId, body: Share) -> HttpResponse:
    """Give a member or guest of the workspace access, or change their role. Only the owner may."""
    session = session_of(request, session_id, SessionRole.OWNER)
    sharing.share(session=session, author=request.user, user=_user(user_id), role=body.role)
    return no_content()


@router.delete(
    "/sessions/{session_id}/members/{user_id}",
    response={204: None},
    operation_id="unshareSession",
    summary="Withdraw access",
)
def unshare(request: ApiRequest, session_id: str, user_id: RowId) -> HttpResponse:
    """Only the owner may. The session's invitation links end too, since one of them could let the user in again."""
    session = session_of(request, session_id, SessionRole.OWNER)
    sharing.unshare(session=session, author=request.user, user=_user(user_id))
    return no_content()


@router.get(
    "/sessions/{session_id}/invitations",
    response=Invitations,
    operation_id="listInvitations",
    summary="List invitation links",
)
def list_invitations(request: ApiRequest, session_id: str) -> HttpResponse:
    """Only the owner may."""
    session = session_of(request, session_id, SessionRole.OWNER)
    invitations = [invitation_out(each, each.role) for each in sharing.invitations(session)]
    return json_response(request, {"invitations": invitations})


@router.post(
    "/sessions/{session_id}/invitations",
    response={201: CreatedInvitation},
    operation_id="createInvitation",
    summary="Create an invitation link",
)
def create_invitation(request: ApiRequest, session_id: str, body: NewInvitation) -> HttpResponse:
    """Only the owner may. The link works for a week, and for `max_uses` users, who become guests of the workspace."""
    session = session_of(request, session_id, SessionRole.OWNER)
    token = sharing.invite(session=session, author=request.user, role=body.role, uses=body.max_uses)
    invitation = {"url": join_url(request, token), "token": token, "role": body.role, "max_uses": body.max_uses}
    return json_response(request, invitation, status=201, tagged=False)


@router.delete(
    "/sessions/{session_id}/invitations",
    response={204: None},
    operation_id="revokeInvitations",
    summary="End all invitation links",
)
def revoke_invitations(request: ApiRequest, session_id: str) -> HttpResponse:
    """Only the owner may. Users who have joined keep their access."""
    sharing.revoke_invitations(session=session_of(request, session_id, SessionRole.OWNER), author=request.user)
    return no_content()


@router.delete(
    "/sessions/{session_id}/invitations/{invitation_id}",
    response={204: None},
    operation_id="revokeInvitation",
    summary="End an invitation link",
)
def revoke_invitation(request: ApiRequest, session_id: str, invitation_id: RowId) -> HttpResponse:
    """Only the owner may. Ending a link again is no error."""
    session = session_of(request, session_id, SessionRole.OWNER)
    sharing.end_invitation(session=session, author=request.user, invitation_id=invitation_id)
    return no_content()


@router.post(
    "/invitations/accept",
    response=JoinedSession,
    operation_id="acceptInvitation",
    summary="Accept an invitation",
)
def accept_invitation(request: ApiRequest, body: InvitationToken) -> HttpResponse:
    """Join a session, as a guest unless you are a member of its workspace. A role that you have is never lowered.

    Links to a workspace are accepted in a browser.
    """
    session = sharing.accept(token=body.token, user=request.user)
    return json_response(request, {"session": session.pk}, tagged=False)


def invitation_out(link: Invitation | WorkspaceInvitation, role: str) -> Json:
    """Return an invitation link as JSON, to a session or a workspace."""
    return {
        "id": link.pk,
        "role": role,
        "created_by": link.created_by.sender,
        "uses": link.uses,
        "max_uses": link.max_uses,
        "created_at": link.created_at.isoformat(),
        "expires_at": link.expires_at.isoformat(),
    }


def join_url(request: ApiRequest, token: str) -> str:
    """Return the link of an invitation, to a session or a workspace."""
    origin = settings.PUBLIC_URL or f"{request.scheme}://{request.get_host()}"
    return f"{origin}{reverse('join', args=[token])}"


def _user(user_id: int) -> User:
    """Return a user. An unknown id gets the same error as a user outside the workspace, so it reveals no ids."""
    user = User.objects.filter(pk=user_id).first()
    return user or User(pk=0)
