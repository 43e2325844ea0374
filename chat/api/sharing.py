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
from chat.api.message_schemas import EXAMPLE_SESSION_ID
from chat.api.parsing import Body, RowId
from chat.api.responses import json_response, no_content
from chat.api.schemas import RoleName
from chat.models import Invitation, SessionRole, User, WorkspaceInvitation
from chat.services.people import sharing
from chat.services.people.invitation_links import MAX_USES

router = Router(tags=["Sharing"])
SharedRole = Literal["viewer", "editor"]
WorkspaceRole = Literal["", "viewer", "editor"]
ROLE = "The role in the session. A `viewer` can read it, and an `editor` can also write in it."
USES = "The number of users who have joined by the link."
MAX_USES_DESCRIPTION = "The maximum number of users who can join by the link."


class SessionMember(Schema):
    """A user with access to a session."""

    user_id: int = Field(description="The id of the user.")
    username: str = Field(description="The username for signing in.")
    name: str = Field(description="The display name of the user.")
    role: RoleName = Field(description="The role of the user in the session.")
    is_guest: bool = Field(description="Whether the user is a guest of the workspace.")


class SessionMembers(Schema):
    """The users with access to a session."""

    members: list[SessionMember] = Field(
        description="The owner, unless the account is closed, followed by the users with whom the session is shared."
    )
    workspace_role: WorkspaceRole = Field(
        description="The role of all other members of the workspace in the session. Empty if they have no access."
    )


class Share(Body):
    """The access to give to a user."""

    role: SharedRole = Field(description=ROLE)


class WorkspaceAccess(Body):
    """The access to give to all members of the workspace."""

    role: WorkspaceRole = Field(
        description="The role of all members of the workspace in the session. Empty if only users with whom it is "
        "shared have access."
    )


class InvitationOut(Schema):
    """A valid invitation link. Its URL is returned only when the link is created."""

    id: int = Field(description="The id of the link.")
    role: SharedRole = Field(description="The role in the session that users get.")
    created_by: str = Field(description="The name of the user who created the link.")
    uses: int = Field(description=USES)
    max_uses: int | None = Field(description=f"{MAX_USES_DESCRIPTION} Null if it is unlimited.")
    created_at: datetime = Field(description="The time at which the link was created.")
    expires_at: datetime = Field(description="The time at which the link expires.")


class Invitations(Schema):
    """The valid invitation links."""

    invitations: list[InvitationOut] = Field(description="The links, newest first.")


class NewInvitation(Body):
    """An invitation link to create."""

    role: SharedRole = Field(description=ROLE)
    max_uses: int = Field(1, ge=1, le=MAX_USES, description=MAX_USES_DESCRIPTION)


class CreatedInvitation(Schema):
    """A new invitation link to a session. Parley stores only a hash of its token, so the link is not returned again."""

    id: int = Field(description="The id of the link, by which you can end it.")
    url: str = Field(description="The URL to send to users.")
    token: str = Field(description="The token at the end of the URL.")
    role: SharedRole = Field(description="The role in the session that users get.")
    max_uses: int = Field(description="The maximum number of users who can join by the link.")
    expires_at: datetime = Field(description="The time at which the link expires.")


class InvitationToken(Body):
    """An invitation to accept."""

    token: str = Field(max_length=100, description="The token, which is the last part of the invitation's URL.")


class JoinedSession(Schema):
    """The session that you have joined."""

    session: str = Field(examples=[EXAMPLE_SESSION_ID], description="The id of the session.")


@router.get(
    "/sessions/{session_id}/members",
    response=SessionMembers,
    operation_id="listSessionMembers",
    summary="List the members of a session",
)
def list_members(request: ApiRequest, session_id: str) -> HttpResponse:
    """List the users with access to a session, and their roles in it."""
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
    summary="Set the access of the workspace",
)
def open_to_workspace(request: ApiRequest, session_id: str, body: WorkspaceAccess) -> HttpResponse:
    """Give all members of the workspace a role in the session, or end this access.

    Only the owner of the session may change it.
    """
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
    """Give a member or guest of the workspace access to a session, or change their role in it.

    Only the owner of the session may share it.
    """
    session = session_of(request, session_id, SessionRole.OWNER)
    sharing.share(session=session, author=request.user, user=_user(user_id), role=body.role)
    return no_content()


@router.delete(
    "/sessions/{session_id}/members/{user_id}",
    response={204: None},
    operation_id="unshareSession",
    summary="End a user's access",
)
def unshare(request: ApiRequest, session_id: str, user_id: RowId) -> HttpResponse:
    """End a user's access to a session. All invitation links to the session also end, because the user may know one.

    Only the owner of the session may end access.
    """
    session = session_of(request, session_id, SessionRole.OWNER)
    sharing.unshare(session=session, author=request.user, user=_user(user_id))
    return no_content()


@router.get(
    "/sessions/{session_id}/invitations",
    response=Invitations,
    operation_id="listInvitations",
    summary="List the invitation links to a session",
)
def list_invitations(request: ApiRequest, session_id: str) -> HttpResponse:
    """List the valid invitation links to a session. Only the owner of the session may list them."""
    session = session_of(request, session_id, SessionRole.OWNER)
    invitations = [invitation_out(each, each.role) for each in sharing.invitations(session)]
    return json_response(request, {"invitations": invitations})


@router.post(
    "/sessions/{session_id}/invitations",
    response={201: CreatedInvitation},
    operation_id="createInvitation",
    summary="Create an invitation link to a session",
)
def create_invitation(request: ApiRequest, session_id: str, body: NewInvitation) -> HttpResponse:
    """Create an invitation link, by which up to `max_uses` users can join the session within seven days.

    Users who join become guests of the workspace unless they are members of it. Only the owner of the session may
    create links.
    """
    session = session_of(request, session_id, SessionRole.OWNER)
    link, token = sharing.invite(session=session, author=request.user, role=body.role, uses=body.max_uses)
    return json_response(request, created_out(request, link, token, body.role), status=201, tagged=False)


@router.delete(
    "/sessions/{session_id}/invitations",
    response={204: None},
    operation_id="revokeInvitations",
    summary="End all invitation links to a session",
)
def revoke_invitations(request: ApiRequest, session_id: str) -> HttpResponse:
    """End all invitation links to a session. Users who have joined keep their access.

    Only the owner of the session may end links.
    """
    sharing.revoke_invitations(session=session_of(request, session_id, SessionRole.OWNER), author=request.user)
    return no_content()


@router.delete(
    "/sessions/{session_id}/invitations/{invitation_id}",
    response={204: None},
    operation_id="revokeInvitation",
    summary="End an invitation link to a session",
)
def revoke_invitation(request: ApiRequest, session_id: str, invitation_id: RowId) -> HttpResponse:
    """End an invitation link. Only the owner of the session may end it. Ending it again is not an error."""
    session = session_of(request, session_id, SessionRole.OWNER)
    sharing.end_invitation(session=session, author=request.user, invitation_id=invitation_id)
    return no_content()


@router.post(
    "/invitations/accept",
    response=JoinedSession,
    operation_id="acceptInvitation",
    summary="Accept an invitation to a session",
)
def accept_invitation(request: ApiRequest, body: InvitationToken) -> HttpResponse:
    """Join a session by an invitation link. You become a guest of its workspace unless you are a member of it.

    If you already have a higher role in the session, you keep it. Invitations to a workspace can only be accepted in a
    browser.
    """
    session = sharing.accept(token=body.token, user=request.user)
    return json_response(request, {"session": session.pk}, tagged=False)


def invitation_out(link: Invitation | WorkspaceInvitation, role: str) -> Json:
    """Return an invitation link to a session or a workspace as JSON."""
    return {
        "id": link.pk,
        "role": role,
        "created_by": link.created_by.sender,
        "uses": link.uses,
        "max_uses": link.max_uses,
        "created_at": link.created_at.isoformat(),
        "expires_at": link.expires_at.isoformat(),
    }


def created_out(request: ApiRequest, link: Invitation | WorkspaceInvitation, token: str, role: str) -> Json:
    """Return a new invitation link to a session or a workspace as JSON, with its token."""
    return {
        "id": link.pk,
        "url": join_url(request, token),
        "token": token,
        "role": role,
        "max_uses": link.max_uses,
        "expires_at": link.expires_at.isoformat(),
    }


def join_url(request: ApiRequest, token: str) -> str:
    """Return the URL of an invitation to a session or a workspace."""
    origin = settings.PUBLIC_URL or f"{request.scheme}://{request.get_host()}"
    return f"{origin}{reverse('join', args=[token])}"


def _user(user_id: int) -> User:
    """Return the user, or for an unknown id an unsaved user.

    The caller then reports the same error as for a user outside the workspace, so that it does not reveal which ids
    exist.
    """
    user = User.objects.filter(pk=user_id).first()
    return user or User(pk=0)
