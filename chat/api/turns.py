"""Controlling the agent: stop it, ask it again, continue in a fork."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import reverse
from ninja import Body as BodyParam
from ninja import Router, Schema
from pydantic import Field

from chat.api.auth import ApiRequest
from chat.api.doing import obey, obey_about
from chat.api.parsing import Body
from chat.api.responses import answer, nothing
from chat.api.schemas import SESSION_ID
from chat.commands import Number

router = Router(tags=["Turns"])


class Cancellation(Schema):
    stopping: bool = Field(description="Whether a turn was running, which stops now")


class NewFork(Body):
    """`key` makes a repeated request return the session of the first one."""

    text: str | None = Field(None, description="Replaces the last user text that is copied, and ends the copy")
    run: bool = Field(True, description="Whether the agent continues from the end of the copy")
    key: str | None = Field(None, min_length=1, max_length=100)


class Fork(Schema):
    session: str = Field(examples=[SESSION_ID], description="The new session")
    url: str = Field(description="The address of its page")
    repeated: bool = Field(description="A request with this key has made the fork before")


class ReadPosition(Body):
    revision: Number = Field(description="The session's revision up to which you have read it")


@router.post(
    "/sessions/{session_id}/cancel", response=Cancellation, operation_id="cancelTurn", summary="Stop the running turn"
)
def cancel_turn(request: ApiRequest, session_id: str) -> HttpResponse:
    """What the agent has written so far is kept. Repeating the request does no harm."""
    return answer(request, obey(request, session_id, "cancel"), tagged=False)


@router.post(
    "/sessions/{session_id}/messages/{message_id}/retry",
    response={204: None},
    operation_id="retryMessage",
    summary="Retry from a message",
)
def retry_message(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """A user message stays and is answered again; of the agent's messages the whole response is replaced."""
    obey_about(request, session_id, message_id, "retry")
    return nothing()


@router.post(
    "/sessions/{session_id}/messages/{message_id}/fork",
    response={201: Fork, 200: Fork},
    operation_id="forkSession",
    summary="Fork a session",
)
def fork_session(
    request: ApiRequest,
    session_id: str,
    message_id: str,
    body: BodyParam[NewFork | None] = None,
) -> HttpResponse:
    """Copy the session up to and including the message into a new one of your own. 200: this key has made the fork."""
    forked = obey_about(request, session_id, message_id, "fork", **(body or NewFork.model_validate({})).model_dump())
    location = reverse("api:get_session", args=[forked["session"]])
    status = 200 if forked["repeated"] else 201
    return answer(request, forked, status=status, location=location, tagged=False)


@router.post(
    "/sessions/{session_id}/read", response={204: None}, operation_id="markRead", summary="Mark a session as read"
)
def mark_read(request: ApiRequest, session_id: str, body: ReadPosition) -> HttpResponse:
    """Up to a revision: the session is not `unread` for you any more, unless something came after it."""
    obey(request, session_id, "read", revision=body.revision)
    return nothing()
