"""Suggested edits of a user's message. Editors suggest them. The message's author or the session's owner decides."""

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
    """A suggested text for a message."""

    text: str = Field(description="The suggested text.")
    revision: Number | None = Field(
        None,
        description="The `revision` of the message that you have read. If its text was edited since, the request is "
        "refused as `stale`.",
    )


class Suggested(Schema):
    """The suggestion that was added."""

    suggestion: str = Field(examples=[SUGGESTION_ID], description="The id of the suggestion.")


class SuggestionOut(Schema):
    """An open suggestion for a message."""

    id: str = Field(examples=[SUGGESTION_ID], description="The id of the suggestion.")
    user_id: int | None = Field(
        description="The id of the user who made the suggestion. Null if the account was deleted."
    )
    name: str = Field(description="The name of the user who made the suggestion.")
    text: str = Field(description="The suggested text.")
    revision: int = Field(description="The `revision` of the message when the suggestion was made.")
    created_at: datetime = Field(description="The time of the suggestion.")


class SuggestionList(Schema):
    """The open suggestions for a message."""

    suggestions: list[SuggestionOut] = Field(description="The suggestions, oldest first.")


class Decision(Body):
    """A decision to accept a suggestion."""

    revision: Number | None = Field(
        None,
        description="The `revision` of the message that you compared with the suggestion. If its text was edited "
        "since, the request is refused as `stale`.",
    )


class Accepted(Schema):
    """The message after the edit."""

    revision: int = Field(description="The new `revision` of the message.")


@router.get(
    "/sessions/{session_id}/messages/{message_id}/suggestions",
    response=SuggestionList,
    operation_id="listSuggestions",
    summary="List suggested edits",
)
def list_suggestions(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """List the open suggestions for a message, oldest first."""
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
    """Suggest an edit of a user's message that you may not edit. It replaces your open suggestion for the message."""
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
    """Edit a message as suggested. You become the author of the edit, which also names the user who suggested it.

    Only the author of the message and the session's owner may accept a suggestion.
    """
    fields = {"id": checked_id(suggestion_id, NoSuchSuggestion), **body.model_dump()}
    return json_response(request, run_command(request, session_id, "accept_suggestion", **fields))


@router.post(
    "/sessions/{session_id}/suggestions/{suggestion_id}/dismiss",
    response={204: None},
    operation_id="dismissSuggestion",
    summary="Dismiss a suggested edit",
)
def dismiss_suggestion(request: ApiRequest, session_id: str, suggestion_id: str) -> HttpResponse:
    """Dismiss a suggestion, or withdraw your own.

    Only the author of the message and the session's owner may dismiss suggestions of other users.
    """
    run_command(request, session_id, "dismiss_suggestion", id=checked_id(suggestion_id, NoSuchSuggestion))
    return no_content()
