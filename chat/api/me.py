"""The user who asks, and their workspaces."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Literal

from django.http import HttpResponse
from ninja import Router, Schema
from pydantic import Field

from chat.api.auth import ApiRequest
from chat.api.responses import answer, nothing
from chat.limits import quotas
from chat.models import ApiToken
from chat.services.people import workspaces

router = Router(tags=["Workspaces"])


WorkspaceRole = Literal["owner", "admin", "member", "guest"]


class WorkspaceOut(Schema):
    """A team. Its members may share their sessions with each other; guests see what is shared with them."""

    id: int
    name: str
    role: WorkspaceRole = Field(description="Yours")


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


@router.get("/me", response=Me, operation_id="getMe", summary="Read who you are")
def me(request: ApiRequest) -> HttpResponse:
    """The user whose token or sign-in the request uses."""
    token = request.auth
    standing = workspaces.standing_of(request.user)
    found = {
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
    return answer(request, found)


@router.get(
    "/me/usage", response=MyUsageOut, operation_id="getMyUsage", summary="Read what you have used of your quotas"
)
def usage(request: ApiRequest) -> HttpResponse:
    """Requests beyond a quota are refused as `quota_exceeded`."""
    used = asdict(quotas.usage_of(request.user))
    return answer(request, {**used, "day_ends": used["day_ends"].isoformat(), "quotas": quotas.as_numbers()})


@router.get(
    "/workspaces/{workspace_id}/members",
    response=WorkspaceMembers,
    operation_id="listWorkspaceMembers",
    summary="List the members of a workspace",
)
def list_members(request: ApiRequest, workspace_id: int) -> HttpResponse:
    """With whom you may share a session of this workspace. Guests of it may not list them."""
    found = workspaces.members_of(request.user, workspace_id)
    members = [
        {"user_id": each.user_id, "username": each.user.username, "name": each.user.sender, "role": each.role}
        for each in found
    ]
    return answer(request, {"members": members})


@router.post(
    "/workspaces/{workspace_id}/enter",
    response={204: None},
    operation_id="enterWorkspace",
    summary="Switch to a workspace",
)
def enter_workspace(request: ApiRequest, workspace_id: int) -> HttpResponse:
    """New sessions begin there, unless they name another one."""
    workspaces.enter(user=request.user, workspace_id=workspace_id)
    return nothing()
