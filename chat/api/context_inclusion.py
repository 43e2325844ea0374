"""Excluding many messages from the context at once, and including them again."""

from __future__ import annotations

from django.http import HttpResponse
from ninja import Body as BodyParam
from ninja import Router, Schema
from pydantic import Field

from chat.api.auth import ApiRequest
from chat.api.commands import obey_about
from chat.api.parsing import Body
from chat.api.responses import answer
from chat.commands import Number

router = Router(tags=["Messages"])


class ContextChange(Schema):
    count: int = Field(description="How many messages were changed")
    since: int = Field(description="What `include_before` takes to undo exactly this change")


class IncludeBefore(Body):
    since: Number | None = Field(
        None, description="The `since` of an `exclude_before`: include only what it excluded and nobody changed since"
    )


@router.post(
    "/sessions/{session_id}/messages/{message_id}/exclude_before",
    response=ContextChange,
    operation_id="excludeBefore",
    summary="Exclude all messages before a message",
)
def exclude_before(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """They stay visible, and the model is not sent them any more."""
    return answer(request, obey_about(request, session_id, message_id, "exclude_before"), tagged=False)


@router.post(
    "/sessions/{session_id}/messages/{message_id}/include_before",
    response=ContextChange,
    operation_id="includeBefore",
    summary="Include all messages before a message",
)
def include_before(
    request: ApiRequest,
    session_id: str,
    message_id: str,
    body: BodyParam[IncludeBefore | None] = None,
) -> HttpResponse:
    """All of them, or those that one `exclude_before` excluded."""
    since = body.since if body else None
    return answer(request, obey_about(request, session_id, message_id, "include_before", since=since), tagged=False)
