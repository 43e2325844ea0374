"""Invitation links with which users become members of a workspace. Its owners and admins manage the links."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.http import HttpResponse
from ninja import Router, Schema
from pydantic import Field

from chat.access import workspace_where
from chat.api.auth import ApiRequest
from chat.api.parsing import Body, RowId
from chat.api.responses import json_response, no_content
from chat.api.sharing import MAX_USES_DESCRIPTION, USES, created_out, invitation_out
from chat.models import Membership
from chat.permissions import Permission
from chat.services.people import workspace_invitations
from chat.services.people.invitation_links import MAX_USES

router = Router(tags=["Workspaces"])
PATH = "/workspaces/{workspace_id}/invitations"
JoinedRole = Literal["member"]
ROLE = "The role in the workspace that users get."
MEMBER = Membership.Role.MEMBER.value


class WorkspaceInvitationOut(Schema):
    """A valid invitation link. Its URL is returned only when the link is created."""

    id: int = Field(description="The id of the link.")
    role: JoinedRole = Field(description=ROLE)
    created_by: str = Field(description="The name of the user who created the link.")
    uses: int = Field(description=USES)
    max_uses: int = Field(description=MAX_USES_DESCRIPTION)
    created_at: datetime = Field(description="The time at which the link was created.")
    expires_at: datetime = Field(description="The time at which the link expires.")


class WorkspaceInvitations(Schema):
    """The valid invitation links."""

    invitations: list[WorkspaceInvitationOut] = Field(description="The links, newest first.")


class NewWorkspaceInvitation(Body):
    """An invitation link to create."""

    max_uses: int = Field(1, ge=1, le=MAX_USES, description=MAX_USES_DESCRIPTION)


class CreatedWorkspaceInvitation(Schema):
    """A new invitation link to a workspace.

    Parley stores only a hash of its token, so the link is not returned again.
    """

    id: int = Field(description="The id of the link, by which you can end it.")
    url: str = Field(description="The URL to send to users.")
    token: str = Field(description="The token at the end of the URL.")
    role: JoinedRole = Field(description=ROLE)
    max_uses: int = Field(description="The maximum number of users who can join by the link.")
    expires_at: datetime = Field(description="The time at which the link expires.")


@router.get(
    PATH,
    response=WorkspaceInvitations,
    operation_id="listWorkspaceInvitations",
    summary="List the invitation links to a workspace",
)
def list_invitations(request: ApiRequest, workspace_id: int) -> HttpResponse:
    """List the valid invitation links to a workspace. A link ends when its creator may no longer manage members.

    Only owners and admins of the workspace may list the links.
    """
    workspace = workspace_where(request.user, Permission.MANAGE_MEMBERS, workspace_id)
    invitations = [invitation_out(each, MEMBER) for each in workspace_invitations.invitations(workspace)]
    return json_response(request, {"invitations": invitations})


@router.post(
    PATH,
    response={201: CreatedWorkspaceInvitation},
    operation_id="createWorkspaceInvitation",
    summary="Create an invitation link to a workspace",
)
def create_invitation(request: ApiRequest, workspace_id: int, body: NewWorkspaceInvitation) -> HttpResponse:
    """Create an invitation link, by which up to `max_uses` users can join the workspace within seven days.

    Send the link to the users. They open it in a browser, where they can also create an account. Only owners and admins
    of the workspace may create links.
    """
    link, token = workspace_invitations.invite(author=request.user, workspace_id=workspace_id, uses=body.max_uses)
    return json_response(request, created_out(request, link, token, MEMBER), status=201, tagged=False)


@router.delete(
    PATH,
    response={204: None},
    operation_id="revokeWorkspaceInvitations",
    summary="End all invitation links to a workspace",
)
def revoke_invitations(request: ApiRequest, workspace_id: int) -> HttpResponse:
    """End all invitation links to a workspace. Users who have joined stay members.

    Only owners and admins of the workspace may end links.
    """
    workspace_invitations.revoke_invitations(author=request.user, workspace_id=workspace_id)
    return no_content()


@router.delete(
    f"{PATH}/{{invitation_id}}",
    response={204: None},
    operation_id="revokeWorkspaceInvitation",
    summary="End an invitation link to a workspace",
)
def revoke_invitation(request: ApiRequest, workspace_id: int, invitation_id: RowId) -> HttpResponse:
    """End an invitation link. Users who have joined stay members. Ending it again is not an error.

    Only owners and admins of the workspace may end links.
    """
    workspace_invitations.end_invitation(author=request.user, workspace_id=workspace_id, invitation_id=invitation_id)
    return no_content()
