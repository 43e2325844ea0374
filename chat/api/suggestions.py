"""Suggested edits of a user's message: editors make them, its author or the session's owner decides."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpResponse
from django.urls import reverse
from ninja import Router, Schema
from pydantic import Field

from chat.api.auth import ApiRequest, session_of
from chat.api.commands import checked_id, run_command, run_message_command
from chat.api.parsing import Body
from chat.api.responses import json_response, no_content
from chat.commands import Number
from chat.errors import NoSuchMessage
from chat.models import ChatMessage
from chat.services.messages.suggestions import NoSuchSuggestion, open_suggestions

router = Router(tags=["Messages"])
SUGGESTION_ID = "e_0123456789abcdef01234567"


class NewSuggestion(Body):
    """Another text for the message. `revision` is the revision of the message that you read."""

    text: str = Field(description="The proposed text of the message")
    revision: Number | None = Field(None, description="Refused as `stale` if the text was edited since")


class Suggested(Schema):
    suggestion: str = Field(examples=[SUGGESTION_ID])


class SuggestionOut(Schema):
    """An open suggestion; `revision` is the message's when it was made."""

    id: str = Field(examples=[SUGGESTION_ID])
    user_id: int | None
    name: str
    text: str
    revision: int
    created_at: datetime


class SuggestionList(Schema):
    suggestions: list[SuggestionOut]


class Decision(Body):
    """`revision` is the revision of the message that the suggestion was compared with."""

    revision: Number | None = Field(None, description="Refused as stale if the message has been edited since")


class Accepted(Schema):
    """The message's revision."""

    revision: int


@router.get(
    "/sessions/{session_id}/messages/{message_id}/suggestions",
    response=SuggestionList,
    operation_id="listSuggestions",
    summary="List suggested edits",
)
def list_suggestions(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """The open suggestions, oldest first."""
    session = session_of(request, session_id)
    row = ChatMessage.objects.in_conversation(session.pk).filter(pk=checked_id(message_id)).first()
    if row is None:
        raise NoSuchMessage
    suggestions = [
        {
            "id": each.pk,
            "user_id": each.user_id,
            "name": each.user_name,
            "text": each.text,
            "revision": each.revision,
            "created_at": each.created_at.isoformat(),
        }
        for each in open_suggestions(row)
    ]
    return json_response(request, {"suggestions": suggestions})


@router.post(
    "/sessions/{session_id}/messages/{message_id}/suggestions",
    response={201: Suggested},
    operation_id="suggestEdit",
    summary="Suggest an edit",
)
def suggest_edit(request: ApiRequest, session_id: str, message_id: str, body: NewSuggestion) -> HttpResponse:
    """For a message that you may not edit. It replaces your open suggestion for this message, if there is one."""
    result = run_message_command(request, session_id, message_id, "suggest_edit", **body.model_dump())
    location = reverse("api:list_suggestions", args=[session_id, message_id])
    return json_response(request, result, status=201, location=location)


@router.post(
    "/sessions/{session_id}/suggestions/{suggestion_id}/accept",
    response=Accepted,
    operation_id="acceptSuggestion",
    summary="Accept a suggested edit",
)
def accept_suggestion(request: ApiRequest, session_id: str, suggestion_id: str, body: Decision) -> HttpResponse:
    """The edit becomes yours and names the user who suggested it."""
    fields = {"id": checked_id(suggestion_id, NoSuchSuggestion), **body.model_dump()}
    return json_response(request, run_command(request, session_id, "accept_suggestion", **fields))


@router.post(
    "/sessions/{session_id}/suggestions/{suggestion_id}/dismiss",
    response={204: None},
    operation_id="dismissSuggestion",
    summary="Dismiss a suggested edit",
)
def dismiss_suggestion(request: ApiRequest, session_id: str, suggestion_id: str) -> HttpResponse:
    """You may dismiss suggestions for your message or in your session, and your own."""
    run_command(request, session_id, "dismiss_suggestion", id=checked_id(suggestion_id, NoSuchSuggestion))
    return no_content()
