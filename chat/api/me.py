"""The user who sends the request: their data, their workspaces, and the guests of those workspaces."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from ninja import Router, Schema
from pydantic import Field

from chat.access import workspace_where
from chat.api.auth import ApiRequest, still_authenticated
from chat.api.parsing import Body, RowId
from chat.api.responses import json_response, no_content
from chat.downloads import file_name, passed_on, while_permitted
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
        "description": "The ZIP archive.",
        # Client generators use the first media type that they know.
        "content": {"application/octet-stream": BINARY, "application/zip": BINARY},
    },
    409: {"$ref": "#/components/responses/Problem"},
}
WorkspaceRole = Literal["owner", "admin", "member", "guest"]


class WorkspaceOut(Schema):
    """A workspace, which is a team. Its members can share sessions with each other."""

    id: int = Field(description="The id of the workspace.")
    name: str = Field(description="The name of the workspace.")
    role: WorkspaceRole = Field(
        description="Your role in the workspace. A `guest` sees only the sessions that are shared with them."
    )


class WorkspaceChange(Body):
    """Changes of a workspace."""

    name: Annotated[str, Field(max_length=1000, description="The new name. At most 120 characters.")]


class WorkspaceNameOut(Schema):
    """A workspace and its name."""

    id: int = Field(description="The id of the workspace.")
    name: str = Field(description="The name of the workspace.")


class Me(Schema):
    """The user in whose name the request acts."""

    id: int = Field(description="The id of the user.")
    username: str = Field(description="The username for signing in.")
    name: str = Field(description="The display name, which other users see.")
    scope: Literal["read", "write"] = Field(
        description="What the token or the sign-in session may do: only `read`, or also `write`."
    )
    workspaces: list[WorkspaceOut] = Field(description="The workspaces that you belong to, oldest first.")
    workspace: int | None = Field(
        description="The id of your current workspace, in which sessions are created by default. Null if you have "
        "none yet."
    )
    can_begin_sessions: bool = Field(
        description="Whether you may create sessions in any workspace. False if you are only a guest."
    )


class QuotasOut(Schema):
    """The quotas of a user. 0 means no limit."""

    stored_megabytes: int = Field(description="The maximum size of your stored files, in megabytes (1,048,576 bytes).")
    running_turns: int = Field(
        description="The maximum number of turns that you have started and that run at the same time."
    )
    tokens_per_day: int = Field(
        description="The maximum number of input and output tokens per day. A day begins at midnight UTC."
    )


class MyUsageOut(Schema):
    """The usage of your quotas. Tokens and responses count from midnight UTC.

    They include those of the turns that you started, and of the generation of titles for your sessions.
    """

    stored_bytes: int = Field(
        description="The size of your stored files in bytes. A file that is in several sessions counts once."
    )
    running_turns: int = Field(description="The number of running turns that you have started.")
    tokens_today: int = Field(description="The number of input and output tokens since midnight UTC.")
    responses_today: int = Field(description="The number of responses of models since midnight UTC.")
    day_ends: datetime = Field(description="The time at which `tokens_today` and `responses_today` start at 0 again.")
    quotas: QuotasOut


class WorkspaceMember(Schema):
    """A member or guest of a workspace."""

    user_id: int = Field(description="The id of the user.")
    username: str = Field(description="The username for signing in.")
    name: str = Field(description="The display name of the user.")
    role: WorkspaceRole = Field(description="The role of the user in the workspace.")


class WorkspaceMembers(Schema):
    """The members and guests of a workspace."""

    members: list[WorkspaceMember] = Field(description="The members and guests, ordered by name.")


class MemberChange(Body):
    """A change of a member's role."""

    role: Literal["owner", "admin", "member"] = Field(
        description="The new role. Only owners may make a member an owner."
    )


class OwnerUsageOut(Schema):
    """The usage of the sessions that one user owns in a workspace."""

    user_id: int = Field(description="The id of the user.")
    username: str = Field(description="The username for signing in.")
    name: str = Field(description="The display name of the user.")
    sessions: int = Field(description="The number of sessions, including deleted sessions until they are purged.")
    tokens: int = Field(description="The number of input and output tokens that the sessions have used.")


class WorkspaceUsage(Schema):
    """The usage of the sessions of a workspace."""

    owners: list[OwnerUsageOut] = Field(description="The usage by owner, beginning with the most tokens.")


class Guest(Schema):
    """A guest of a workspace, who sees only the sessions that are shared with them."""

    user_id: int = Field(description="The id of the user.")
    username: str = Field(description="The username for signing in.")
    name: str = Field(description="The display name of the user.")
    workspace: int = Field(description="The id of the workspace.")
    sessions: int = Field(description="The number of sessions that are shared with the guest.")


class Guests(Schema):
    """The guests of your workspaces."""

    guests: list[Guest] = Field(description="The guests of all workspaces of which you are an owner or admin.")


class GuestChange(Body):
    """A change of a guest's role."""

    role: Literal["member"] = Field(description="Always `member`: the guest becomes a member of the workspace.")


class NewMember(Schema):
    """A guest who has become a member."""

    user_id: int = Field(description="The id of the user.")
    workspace: int = Field(description="The id of the workspace.")
    role: str = Field(description="The role of the user in the workspace.")


@router.get("/me", response=Me, operation_id="getMe", summary="Retrieve your account")
def me(request: ApiRequest) -> HttpResponse:
    """Return the user in whose name the request acts, with their workspaces."""
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


@router.get("/me/usage", response=MyUsageOut, operation_id="getMyUsage", summary="Retrieve your usage and quotas")
def usage(request: ApiRequest) -> HttpResponse:
    """Return your usage and your quotas. A request that exceeds a quota is refused as `quota_exceeded`."""
    used = asdict(quotas.usage_of(request.user))
    return json_response(request, {**used, "day_ends": used["day_ends"].isoformat(), "quotas": quotas.as_numbers()})


@router.patch(
    "/workspaces/{workspace_id}",
    response=WorkspaceNameOut,
    operation_id="changeWorkspace",
    summary="Rename a workspace",
)
def change_workspace(request: ApiRequest, workspace_id: int, body: WorkspaceChange) -> HttpResponse:
    """Rename a workspace. Only its owners and admins may rename it."""
    renamed = workspaces.rename(author=request.user, workspace_id=workspace_id, name=body.name)
    return json_response(request, {"id": renamed.pk, "name": renamed.name})


@router.get(
    "/workspaces/{workspace_id}/members",
    response=WorkspaceMembers,
    operation_id="listWorkspaceMembers",
    summary="List the members of a workspace",
)
def list_members(request: ApiRequest, workspace_id: int) -> HttpResponse:
    """List the members and guests of a workspace, with whom you can share its sessions. Guests may not list them."""
    found = [
        {"user_id": each.user_id, "username": each.user.username, "name": each.user.sender, "role": each.role}
        for each in workspaces.members_of(request.user, workspace_id)
    ]
    return json_response(request, {"members": found})


@router.patch(
    "/workspaces/{workspace_id}/members/{user_id}",
    response=WorkspaceMember,
    operation_id="changeMember",
    summary="Change the role of a member",
)
def change_member(request: ApiRequest, workspace_id: int, user_id: RowId, body: MemberChange) -> HttpResponse:
    """Change the role of a member, or make a guest a member. A workspace always keeps an owner.

    Only owners and admins may change roles. Only owners may change the role of an owner, or make a member an owner.
    """
    each = members.change_role(author=request.user, workspace_id=workspace_id, user_id=user_id, role=body.role)
    member = {"user_id": each.user_id, "username": each.user.username, "name": each.user.sender, "role": each.role}
    return json_response(request, member)


@router.delete(
    "/workspaces/{workspace_id}/members/{user_id}",
    response={204: None},
    operation_id="removeMember",
    summary="Remove a member from a workspace",
)
def remove_member(request: ApiRequest, workspace_id: int, user_id: RowId) -> HttpResponse:
    """Remove a member or guest from a workspace. A member keeps their own sessions, but loses access to all others in
    it.

    Only owners and admins may remove other members. All members may remove themselves.
    """
    members.remove(author=request.user, workspace_id=workspace_id, user_id=user_id)
    return no_content()


@router.get(
    "/workspaces/{workspace_id}/usage",
    response=WorkspaceUsage,
    operation_id="getWorkspaceUsage",
    summary="Retrieve the usage of a workspace",
)
def workspace_usage(request: ApiRequest, workspace_id: int) -> HttpResponse:
    """Return the number of tokens that the sessions of a workspace have used, by the owner of the sessions.

    Only owners and admins of the workspace may read it.
    """
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
    summary="Set your current workspace",
)
def enter_workspace(request: ApiRequest, workspace_id: int) -> HttpResponse:
    """Make a workspace your current one. New sessions are created in it unless the request names another workspace."""
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
    """Return a ZIP archive with your account, drafts, sessions and files, and with your messages in sessions of others.

    Only one export of your data can run at a time. Otherwise the request is refused as `export_running`.
    """
    archive = export_person(user=request.user, author=request.user)
    pieces = while_permitted(archive, lambda: still_authenticated(request))
    name = file_name(f"Parley {request.user.username}", "parley", "zip")
    return passed_on(request, pieces, name=name, media_type="application/zip", close=archive.close)


@router.get("/guests", response=Guests, operation_id="listGuests", summary="List the guests of your workspaces")
def list_guests(request: ApiRequest) -> HttpResponse:
    """List the guests of all workspaces of which you are an owner or admin."""
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
    """Make a guest a member, who sees the other members and can create sessions.

    Only owners and admins of the workspace may do this.
    """
    member = guests.make_member(author=request.user, workspace_id=workspace_id, user_id=user_id)
    return json_response(request, {"user_id": member.user_id, "workspace": member.workspace_id, "role": member.role})


@router.delete(
    "/workspaces/{workspace_id}/guests/{user_id}",
    response={204: None},
    operation_id="removeGuest",
    summary="Remove a guest from a workspace",
)
def remove_guest(request: ApiRequest, workspace_id: int, user_id: RowId) -> HttpResponse:
    """Remove a guest, who immediately loses access to all sessions of the workspace. The guest's messages stay.

    Only owners and admins of the workspace may remove guests.
    """
    guests.remove(author=request.user, workspace_id=workspace_id, user_id=user_id)
    return no_content()
