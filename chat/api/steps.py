"""A session in the forms of models and of their user interfaces: steps, as a list and as a stream, and segments."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any, Literal

from asgiref.sync import SyncToAsync, sync_to_async
from django.db import close_old_connections
from django.http import HttpResponse, StreamingHttpResponse
from django.utils.translation import gettext as _
from ninja import Header, Query, Router, Schema
from pydantic import Field

from chat.api.answers import answer
from chat.api.auth import ApiRequest, session_of
from chat.commands import Number
from chat.live.logins import Entry, Login, Token
from chat.live.step_stream import StepStream
from chat.models import ApiToken
from chat.running import embedded
from chat.services import steps as reading
from chat.services.access import session_for
from chat.services.errors import Refused
from chat.services.reading import knows_history

router = Router(tags=["steps"])
Json = dict[str, Any]

LastEvent = Annotated[Number | None, Header(alias="Last-Event-ID")]


class StepQuery(Schema):
    """Which part of the conversation: what stands after a sequence number."""

    after: Number = Field(0, description="`next` of the page before")
    limit: int = Field(reading.MOST_STEPS, ge=1, le=reading.MOST_STEPS)


class StreamQuery(Schema):
    """Where a stream begins."""

    since: Number | None = Field(None, description="A revision, as `Last-Event-ID`, which goes before it")


class Metrics(Schema):
    """Milliseconds, tokens, ISO 8601 times; null where nobody knows."""

    duration_ms: int | None
    model_name: str
    provider: str
    input_tokens: int | None
    output_tokens: int | None
    total_tokens: int | None
    cache_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    first_token_latency_ms: int | None
    tool_exec_time_ms: int | None
    tool_exec_start_at: str | None
    tool_exec_end_at: str | None


class Function(Schema):
    name: str
    arguments: str = Field(description="JSON, as the model wrote it.")


class ToolCall(Schema):
    id: str
    type: Literal["function"]
    function: Function


class Step(Schema):
    """One message of the conversation as the model has it: `role` to `name` are what it is sent."""

    id: str = Field(description="That of the message which it begins with; a tool's result: `<message id>.result`.")
    session_id: str
    run_id: str
    sequence: int = Field(description="Of two steps with one place, the tool's result comes after the call.")
    role: Literal["system", "user", "assistant", "tool"]
    content: str | None
    tool_calls: list[ToolCall] | None
    tool_call_id: str | None
    name: str | None
    metrics: Metrics | None
    created_at: str


class Steps(Schema):
    """`next` is the `after` of the page behind this one, null at the end. A stream goes on from the `revision`."""

    revision: int
    steps: list[Step]
    next: int | None


class Words(Schema):
    type: Literal["text", "reasoning"]
    content: str


class Tool(Schema):
    type: Literal["tool"]
    tool_call_id: str
    tool_name: str
    arguments: Any
    status: Literal["running", "success", "error"]
    result: str | None
    error: str | None


class Turn(Schema):
    """What the agent did in a turn, in the order in which it happened."""

    turn_id: str
    sequence: int
    segments: list[Words | Tool]


class Turns(Schema):
    revision: int
    turns: list[Turn]
    next: int | None


EVENTS: dict[int, Json] = {
    200: {"description": "Events", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
    409: {"$ref": "#/components/responses/Problem"},
}


@router.get("/sessions/{session_id}/steps", response=Steps, operation_id="listSteps", summary="Read a session's steps")
def list_steps(request: ApiRequest, session_id: str, query: Query[StepQuery]) -> HttpResponse:
    """One for each message that its model is told: what it is told, and what is known of it beside that."""
    session = session_of(request, session_id)
    return answer(request, asdict(reading.page_of_steps(session, query.after, query.limit)))


@router.get(
    "/sessions/{session_id}/segments", response=Turns, operation_id="listSegments", summary="Read what its agent did"
)
def list_segments(request: ApiRequest, session_id: str, query: Query[StepQuery]) -> HttpResponse:
    """Turn by turn, in the order in which it happened. A page holds whole turns; `limit` counts messages."""
    session = session_of(request, session_id)
    return answer(request, asdict(reading.page_of_segments(session, query.after, query.limit)))


@router.get(
    "/sessions/{session_id}/steps/stream",
    operation_id="streamSteps",
    summary="Follow a session's steps",
    openapi_extra={"responses": EVENTS},
)
def stream_steps(
    request: ApiRequest, session_id: str, query: Query[StreamQuery], last_event: LastEvent = None
) -> StreamingHttpResponse:
    """Server-sent events, each a `step_update`: what changed since a revision, then what changes (docs/protocol.md)."""
    session, role = session_for(request.user, session_id)
    known = (last_event if last_event is not None else query.since) or 0
    if not knows_history(session, known):
        raise Refused("stale", _("This is not the history that you know. Begin anew."), revision=session.revision)
    stream = StepStream(request.user, known, role, _entry(request))
    headers = {"X-Accel-Buffering": "no"}
    return StreamingHttpResponse(_followed(session.pk, stream), content_type="text/event-stream", headers=headers)


def _entry(request: ApiRequest) -> Entry | None:
    if isinstance(request.auth, ApiToken):
        return Token(request.auth.pk)
    key = request.session.session_key
    return Login(key, request.user.pk, request.user.get_session_auth_hash()) if key else None


async def _followed(session_id: str, stream: StepStream) -> AsyncIterator[str]:
    await _let_go()
    hub = embedded.hub()
    feed = hub.watch(session_id, stream)
    try:
        async for piece in stream.follow(feed):
            yield piece
    finally:
        stream.leave()
        hub.unwatch(feed, stream)


async def _let_go() -> None:
    """Give back the database connection and the thread that Django has for each request: a stream needs neither."""
    await sync_to_async(close_old_connections)()
    context = SyncToAsync.thread_sensitive_context.get(None)
    if context is not None and context in SyncToAsync.context_to_thread_executor:
        SyncToAsync.context_to_thread_executor.pop(context).shutdown(wait=False)
