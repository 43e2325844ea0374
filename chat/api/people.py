"""Who asks."""

from __future__ import annotations

from ninja import Router, Schema
from pydantic import Field

from chat.api.auth import ApiRequest
from chat.models import ApiToken
from chat.services.workspaces import places_of

router = Router(tags=["me"])


class WorkspaceOut(Schema):
    """A workspace: its members can share their sessions with each other."""

    id: int
    name: str


class Me(Schema):
    """A person, and what this request may do in their name: `read` or `write`."""

    id: int
    username: str
    name: str
    scope: str
    workspaces: list[WorkspaceOut] = Field(description="All that they are a member of, the oldest first")
    workspace: int | None = Field(description="The one that they are in, where new sessions go; null before the first")


@router.get("/me", response=Me, operation_id="getMe", summary="Tell who asks")
def me(request: ApiRequest) -> Me:
    """The person whose token or browser it is."""
    token = request.auth
    scope = token.scope if isinstance(token, ApiToken) else ApiToken.Scope.WRITE
    places = places_of(request.user)
    return Me(
        id=request.user.pk,
        username=request.user.username,
        name=request.user.sender,
        scope=scope,
        workspaces=[WorkspaceOut(id=place.id, name=place.name) for place in places.mine],
        workspace=places.here.id if places.here else None,
    )
