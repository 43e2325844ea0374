"""Who asks."""

from __future__ import annotations

from ninja import Router, Schema
from pydantic import Field

from chat.api.auth import ApiRequest
from chat.models import ApiToken
from chat.services.workspaces import standing_of

router = Router(tags=["me"])


class WorkspaceOut(Schema):
    """A workspace: its members can share their sessions with each other."""

    id: int
    name: str
    role: str = Field(description="Yours in it: `owner`, `admin`, `member` or `guest`", examples=["member"])


class Me(Schema):
    """A person, and what this request may do in their name: `read` or `write`."""

    id: int
    username: str
    name: str
    scope: str
    workspaces: list[WorkspaceOut] = Field(description="All that they are in, the oldest first")
    workspace: int | None = Field(description="The one that they are in, where new sessions go; null before the first")
    can_begin_sessions: bool = Field(description="False for users who are only guests")


@router.get("/me", response=Me, operation_id="getMe", summary="Tell who asks")
def me(request: ApiRequest) -> Me:
    """The person whose token or browser it is."""
    token = request.auth
    scope = token.scope if isinstance(token, ApiToken) else ApiToken.Scope.WRITE
    standing = standing_of(request.user)
    return Me(
        id=request.user.pk,
        username=request.user.username,
        name=request.user.sender,
        scope=scope,
        workspaces=[
            WorkspaceOut(id=each.workspace_id, name=each.workspace.name, role=each.role)
            for each in standing.memberships
        ],
        workspace=standing.current,
        can_begin_sessions=standing.may_begin,
    )
