"""Guests of workspaces, for their owners and admins."""

from __future__ import annotations

from typing import Literal

from django.http import HttpResponse
from ninja import Router, Schema
from pydantic import Field

from chat.api.auth import ApiRequest
from chat.api.parsing import Body
from chat.api.responses import answer, nothing
from chat.services.people import guests

router = Router(tags=["Workspaces"])


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


@router.get("/guests", response=Guests, operation_id="listGuests", summary="List the guests of your workspaces")
def list_guests(request: ApiRequest) -> HttpResponse:
    """Those of the workspaces of which you are an owner or admin."""
    found = [
        {
            "user_id": each.user_id,
            "username": each.user.username,
            "name": each.user.sender,
            "workspace": each.workspace_id,
            "sessions": each.session_count,
        }
        for each in guests.guests_managed_by(request.user)
    ]
    return answer(request, {"guests": found})


@router.patch(
    "/workspaces/{workspace_id}/guests/{user_id}",
    response=NewMember,
    operation_id="changeGuest",
    summary="Make a guest a member",
)
def change_guest(request: ApiRequest, workspace_id: int, user_id: int, body: GuestChange) -> HttpResponse:
    """For owners and admins of the workspace. Members see who is in it, and start sessions of their own."""
    made = guests.make_member(author=request.user, workspace_id=workspace_id, user_id=user_id)
    return answer(request, {"user_id": made.user_id, "workspace": made.workspace_id, "role": made.role})


@router.delete(
    "/workspaces/{workspace_id}/guests/{user_id}",
    response={204: None},
    operation_id="removeGuest",
    summary="Remove a guest",
)
def remove_guest(request: ApiRequest, workspace_id: int, user_id: int) -> HttpResponse:
    """They lose all sessions of the workspace at once; what they wrote stays."""
    guests.remove(author=request.user, workspace_id=workspace_id, user_id=user_id)
    return nothing()
