"""What is asked of the agent: to stop, to try again, to go on elsewhere."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import reverse
from ninja import Router, Schema
from pydantic import Field

from chat.api.answers import answer, nothing
from chat.api.auth import ApiRequest
from chat.api.bodies import Body
from chat.api.doing import obey, obey_about
from chat.api.shapes import SESSION_ID
from chat.commands import Number

router = Router(tags=["turns"])


class Stopping(Schema):
    """Whether something runs that is stopped now."""

    stopping: bool


class HeldMessage(Body):
    """Which held message is sent; all of them without an `id`."""

    id: str | None = None


class SentNow(Schema):
    """How many messages were sent."""

    sent: int


class NewFork(Body):
    """`text` stands for the last user text that is copied; `run` lets the agent go on from there."""

    text: str | None = None
    run: bool = True
    key: str | None = Field(None, min_length=1, max_length=100)


class Forked(Schema):
    """The new session, and the address of its page. `repeated`: the key has made it before."""

    session: str = Field(examples=[SESSION_ID])
    url: str
    repeated: bool


class Read(Body):
    """Up to where you have seen the session."""

    revision: Number


@router.post(
    "/sessions/{session_id}/cancel", response=Stopping, operation_id="cancelTurn", summary="Stop the running turn"
)
def cancel_turn(request: ApiRequest, session_id: str) -> HttpResponse:
    """What there is so far is kept. Repeating it does no harm."""
    return answer(request, obey(request, session_id, "cancel"))


@router.post(
    "/sessions/{session_id}/send_now", response=SentNow, operation_id="sendHeldMessages", summary="Send held messages"
)
def send_now(request: ApiRequest, session_id: str, body: HeldMessage) -> HttpResponse:
    """Send a queued message that a stop has held, or all of them without an `id`: they begin a turn of their own."""
    return answer(request, obey(request, session_id, "send_now", **body.model_dump()))


@router.post(
    "/sessions/{session_id}/messages/{message_id}/retry",
    response={204: None},
    operation_id="retryMessage",
    summary="Have it said anew",
)
def retry_message(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """What was said to the agent stays and is answered anew; of what the agent said, the whole response goes."""
    obey_about(request, session_id, message_id, "retry")
    return nothing()


@router.post(
    "/sessions/{session_id}/messages/{message_id}/fork",
    response={201: Forked, 200: Forked},
    operation_id="forkSession",
    summary="Go on in a new session",
)
def fork_session(request: ApiRequest, session_id: str, message_id: str, body: NewFork) -> HttpResponse:
    """Copy the message and all before it into a session of your own. 200: the key has made this fork before."""
    forked = obey_about(request, session_id, message_id, "fork", **body.model_dump())
    location = reverse("api:get_session", args=[forked["session"]])
    return answer(request, forked, status=200 if forked["repeated"] else 201, location=location)


@router.post(
    "/sessions/{session_id}/read", response={204: None}, operation_id="markRead", summary="Say what you have seen"
)
def mark_read(request: ApiRequest, session_id: str, body: Read) -> HttpResponse:
    """The session is not `unread` for you any more, up to that revision."""
    obey(request, session_id, "read", revision=body.revision)
    return nothing()
