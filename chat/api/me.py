"""The user who sends the request: their data, their workspaces and the guests of these."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from ninja import Router, Schema
from pydantic import Field

from chat.access import workspace_where
from chat.api.auth import ApiRequest
from chat.api.parsing import Body, RowId
from chat.api.responses import json_response, no_content
from chat.downloads import file_name, passed_on
from chat.limits import quotas
from chat.models import ApiToken
from chat.permissions import Permission
from chat.queries.workspace_usage import usage_by_owner
from chat.services.people import guests, members, workspaces
from chat.transfer.public import export_person

router = Router(tags=["Workspaces"])
BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
ARCHIVE: dict[int, dict[str, Any]] = {
    200: {
        "description": "The archive",
        # Client generators use the first media type that they know.
        "content": {"application/octet-stream": BINARY, "application/zip": BINARY},
    }
}
WorkspaceRole = Literal["owner", "admin", "member", "guest"]


class WorkspaceOut(Schema):
    """A team. Its members may share their sessions with each other; guests see what is shared with them."""

    id: int
    name: str
    role: WorkspaceRole = Field(description="Yours")


class WorkspaceChange(Body):
    name: Annotated[str, Field(max_length=1000, description="The new name")]


class WorkspaceNameOut(Schema):
    id: int
    name: str


class Me(Schema):
    """You."""

    id: int
    username: str
    name: str = Field(description="The name that others see")
    scope: Literal["read", "write"] = Field(description="What this token or sign-in may do")
    workspaces: list[WorkspaceOut] = Field(description="Your workspaces, the oldest first")
    workspace: int | None = Field(description="The current one, where new sessions begin; null before the first")
    can_begin_sessions: bool = Field(description="False for users who are only guests")


class QuotasOut(Schema):
    """What you may use; 0 is no limit."""

    stored_megabytes: int
    running_turns: int
    tokens_per_day: int


class MyUsageOut(Schema):
    """What you have used. Tokens and responses are those of the turns that you started and of your sessions' titles.

    They count from midnight UTC.
    """

    stored_bytes: int = Field(description="The size of your files; a file in several sessions counts once")
    running_turns: int
    tokens_today: int
    responses_today: int
    day_ends: datetime = Field(description="When tokens and responses start at 0 again")
    quotas: QuotasOut


class WorkspaceMember(Schema):
    """A member or guest of a workspace."""

    user_id: int
    username: str
    name: str
    role: WorkspaceRole


class WorkspaceMembers(Schema):
    """In the order of their names."""

    members: list[WorkspaceMember]


class MemberChange(Body):
    role: Literal["owner", "admin", "member"] = Field(description="The new role; only owners make owners")


class OwnerUsageOut(Schema):
    """What the sessions of one owner have used."""

    user_id: int
    username: str
    name: str
    sessions: int
    tokens: int


class WorkspaceUsage(Schema):
    owners: list[OwnerUsageOut] = Field(description="Most tokens first")


class Guest(Schema):
    """A guest of a workspace: they see the sessions that are shared with them, and nothing else of it."""

    user_id: int
    username: str
    name: str
    workspace: int
    sessions: int = Field(description="How many are shared with them")


class Guests(Schema):
    guests: list[Guest]


class GuestChange(Body):
    role: Literal["member"]


class NewMember(Schema):
    user_id: int
    workspace: int
    role: str


@router.get("/me", response=Me, operation_id="getMe", summary="Read who you are")
def me(request: ApiRequest) -> HttpResponse:
    """The user whose token or sign-in the request uses."""
    token = request.auth
    standing = workspaces.memberships_of_user(request.user)
    response = {
        "id": request.user.pk,
        "username": request.user.username,
        "name": request.user.sender,
        "scope": token.scope if isinstance(token, ApiToken) else ApiToken.Scope.WRITE.value,
        "workspaces": [
            {"id": each.workspace_id, "name": each.workspace.name, "role": each.role} for each in standing.memberships
        ],
        "workspace": standing.current,
        "can_begin_sessions": standing.may_begin,
    }
    return json_response(request, response)


@router.get(
    "/me/usage", response=MyUsageOut, operation_id="getMyUsage", summary="Read what you have used of your quotas"
)
def usage(request: ApiRequest) -> HttpResponse:
    """Requests beyond a quota are refused as `quota_exceeded`."""
    used = asdict(quotas.usage_of(request.user))
    return json_response(request, {**used, "day_ends": used["day_ends"].isoformat(), "quotas": quotas.as_numbers()})


@router.patch(
    "/workspaces/{workspace_id}",
    response=WorkspaceNameOut,
    operation_id="changeWorkspace",
    summary="Rename a workspace",
)
def change_workspace(request: ApiRequest, workspace_id: int, body: WorkspaceChange) -> HttpResponse:
    """Only owners and admins may. Names have up to 120 characters."""
    renamed = workspaces.rename(author=request.user, workspace_id=workspace_id, name=body.name)
    return json_response(request, {"id": renamed.pk, "name": renamed.name})


@router.get(
    "/workspaces/{workspace_id}/members",
    response=WorkspaceMembers,
    operation_id="listWorkspaceMembers",
    summary="List the members of a workspace",
)
def list_members(request: ApiRequest, workspace_id: int) -> HttpResponse:
    """The users with whom you may share a session of this workspace. Its guests may not list them."""
    found = [
        {"user_id": each.user_id, "username": each.user.username, "name": each.user.sender, "role": each.role}
        for each in workspaces.members_of(request.user, workspace_id)
    ]
    return json_response(request, {"members": found})


@router.patch(
    "/workspaces/{workspace_id}/members/{user_id}",
    response=WorkspaceMember,
    operation_id="changeMember",
    summary="Change a member's role",
)
def change_member(request: ApiRequest, workspace_id: int, user_id: RowId, body: MemberChange) -> HttpResponse:
    """Only owners and admins may, and only owners make or change owners. The last owner stays one."""
    each = members.change_role(author=request.user, workspace_id=workspace_id, user_id=user_id, role=body.role)
    member = {"user_id": each.user_id, "username": each.user.username, "name": each.user.sender, "role": each.role}
    return json_response(request, member)


@router.delete(
    "/workspaces/{workspace_id}/members/{user_id}",
    response={204: None},
    operation_id="removeMember",
    summary="Remove a member",
)
def remove_member(request: ApiRequest, workspace_id: int, user_id: RowId) -> HttpResponse:
    """They keep their own sessions and lose those shared with them in the workspace. Members may remove themselves."""
    members.remove(author=request.user, workspace_id=workspace_id, user_id=user_id)
    return no_content()


@router.get(
    "/workspaces/{workspace_id}/usage",
    response=WorkspaceUsage,
    operation_id="getWorkspaceUsage",
    summary="Read what the sessions of a workspace have used",
)
def workspace_usage(request: ApiRequest, workspace_id: int) -> HttpResponse:
    """All tokens of its sessions, by their owners. Only owners and admins may read it."""
    workspace = workspace_where(request.user, Permission.SEE_USAGE, workspace_id)
    owners = [
        {
            "user_id": each.user.pk,
            "username": each.user.username,
            "name": each.user.sender,
            "sessions": each.sessions,
            "tokens": each.tokens,
        }
        for each in usage_by_owner(workspace)
    ]
    return json_response(request, {"owners": owners})


@router.post(
    "/workspaces/{workspace_id}/enter",
    response={204: None},
    operation_id="enterWorkspace",
    summary="Switch to a workspace",
)
def enter_workspace(request: ApiRequest, workspace_id: int) -> HttpResponse:
    """New sessions are created in this workspace unless the request names another one."""
    workspaces.enter(user=request.user, workspace_id=workspace_id)
    return no_content()


@router.get(
    "/me/export",
    operation_id="exportMe",
    summary="Export all your data",
    tags=["Transfer"],
    openapi_extra={"responses": ARCHIVE},
)
def export_me(request: ApiRequest) -> HttpResponseBase:
    """One ZIP archive: account, drafts, sessions and files, and your messages in sessions of others. One at a time."""
    pieces = export_person(user=request.user, author=request.user)
    name = file_name(f"Parley {request.user.username}", "parley", "zip")
    return passed_on(request, pieces, name=name, media_type="application/zip")


@router.get("/guests", response=Guests, operation_id="listGuests", summary="List the guests of your workspaces")
def list_guests(request: ApiRequest) -> HttpResponse:
    """The guests of all workspaces of which you are an owner or admin."""
    rows = [
        {
            "user_id": each.user_id,
            "username": each.user.username,
            "name": each.user.sender,
            "workspace": each.workspace_id,
            "sessions": each.session_count,
        }
        for each in guests.guests_managed_by(request.user)
    ]
    return json_response(request, {"guests": rows})


@router.patch(
    "/workspaces/{workspace_id}/guests/{user_id}",
    response=NewMember,
    operation_id="changeGuest",
    summary="Make a guest a member",
)
def change_guest(request: ApiRequest, workspace_id: int, user_id: RowId, body: GuestChange) -> HttpResponse:
    """Only owners and admins may. Members see who is in the workspace, and can start sessions."""
    member = guests.make_member(author=request.user, workspace_id=workspace_id, user_id=user_id)
    return json_response(request, {"user_id": member.user_id, "workspace": member.workspace_id, "role": member.role})


@router.delete(
    "/workspaces/{workspace_id}/guests/{user_id}",
    response={204: None},
    operation_id="removeGuest",
    summary="Remove a guest",
)
def remove_guest(request: ApiRequest, workspace_id: int, user_id: RowId) -> HttpResponse:
    """They lose access to all sessions of the workspace at once. Their messages stay."""
    guests.remove(author=request.user, workspace_id=workspace_id, user_id=user_id)
    return no_content()
