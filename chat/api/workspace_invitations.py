"""The invitation links to a workspace, by which people become its members. Its owners and admins manage them."""

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
from chat.api.sharing import MAX_USES_GIVEN, MOST_USES, USES, invitation_out, join_url
from chat.models import Membership
from chat.permissions import Permission
from chat.services.people import workspace_invitations
from chat.services.people.invitation_links import MAX_USES

router = Router(tags=["Workspaces"])
PATH = "/workspaces/{workspace_id}/invitations"
JoinedRole = Literal["member"]
ROLE = "What users who accept the link become"
MEMBER = Membership.Role.MEMBER.value


class WorkspaceInvitationOut(Schema):
    """An invitation link that works. The link itself is returned only when it is made."""

    id: int
    role: JoinedRole = Field(description=ROLE)
    created_by: str
    uses: int = Field(description=USES)
    max_uses: int = Field(description=MOST_USES)
    created_at: datetime
    expires_at: datetime


class WorkspaceInvitations(Schema):
    """The newest first."""

    invitations: list[WorkspaceInvitationOut]


class NewWorkspaceInvitation(Body):
    max_uses: int = Field(1, ge=1, le=MAX_USES, description=MAX_USES_GIVEN)


class CreatedWorkspaceInvitation(Schema):
    """Users who accept the link become members of the workspace. Parley keeps only a hash of its token."""

    url: str
    token: str
    role: JoinedRole = Field(description=ROLE)
    max_uses: int


@router.get(
    PATH,
    response=WorkspaceInvitations,
    operation_id="listWorkspaceInvitations",
    summary="List the invitation links to a workspace",
)
def list_invitations(request: ApiRequest, workspace_id: int) -> HttpResponse:
    """Only owners and admins may. Links whose maker no longer manages members have ended."""
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
    """Only owners and admins may. The link works for a week, and for `max_uses` users: send it to them.

    They open it in a browser, where they can make an account, too.
    """
    _row, token = workspace_invitations.invite(author=request.user, workspace_id=workspace_id, uses=body.max_uses)
    invitation = {"url": join_url(request, token), "token": token, "role": MEMBER, "max_uses": body.max_uses}
    return json_response(request, invitation, status=201, tagged=False)


@router.delete(
    PATH,
    response={204: None},
    operation_id="revokeWorkspaceInvitations",
    summary="End all invitation links to a workspace",
)
def revoke_invitations(request: ApiRequest, workspace_id: int) -> HttpResponse:
    """Only owners and admins may. Users who have joined stay members."""
    workspace_invitations.revoke_invitations(author=request.user, workspace_id=workspace_id)
    return no_content()


@router.delete(
    f"{PATH}/{{invitation_id}}",
    response={204: None},
    operation_id="revokeWorkspaceInvitation",
    summary="End an invitation link to a workspace",
)
def revoke_invitation(request: ApiRequest, workspace_id: int, invitation_id: RowId) -> HttpResponse:
    """Only owners and admins may. Ending a link again is no error."""
    workspace_invitations.end_invitation(author=request.user, workspace_id=workspace_id, invitation_id=invitation_id)
    return no_content()
