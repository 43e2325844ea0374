"""A session as model messages (steps, as pages and as a stream) and as parts of turns (segments)."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal

from django.http import HttpResponse, StreamingHttpResponse
from django.utils.translation import gettext as _
from ninja import Query, Router, Schema
from pydantic import Field

from chat.access import session_for
from chat.api.auth import ApiRequest, session_of
from chat.api.events import STREAM, LastEvent, StreamQuery
from chat.api.message_schemas import CitedSource, Mode
from chat.api.responses import json_response
from chat.api.streams import credential_of, require_stream_slot, stream_response
from chat.commands import Number
from chat.errors import ServiceError
from chat.limits.whole_sessions import reading_whole
from chat.live.step_stream import StepStream
from chat.queries import steps as step_queries
from chat.queries.messages import knows_history

router = Router(tags=["Steps"])
EVENTS = STREAM | {409: {"$ref": "#/components/responses/Problem"}}


class StepQuery(Schema):
    after: Number = Field(0, description="Steps with a greater `sequence`; `next` of the previous page")
    limit: int = Field(
        step_queries.MOST_STEPS, ge=1, le=step_queries.MOST_STEPS, description="The most that a page has"
    )


class TurnQuery(Schema):
    after: Number = Field(0, description="Turns that begin after this message `sequence`; `next` of the previous page")
    limit: int = Field(step_queries.MOST_STEPS, ge=1, le=step_queries.MOST_STEPS, description="Counts messages")


class StepMetrics(Schema):
    """Milliseconds, tokens and times; null where they are not known."""

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
    tool_exec_start_at: datetime | None
    tool_exec_end_at: datetime | None


class FunctionCall(Schema):
    name: str
    arguments: str = Field(description="JSON, as the model wrote it")


class StepToolCall(Schema):
    id: str
    type: Literal["function"]
    function: FunctionCall


class StepOut(Schema):
    """One message of the conversation as the model has it: `role` to `name` are what the model is sent."""

    id: str = Field(description="The id of the message it begins with; of a tool's result: `<message id>.result`")
    session_id: str
    run_id: str = Field(description="The turn")
    sequence: int = Field(description="Unique in the session and rising: a tool's result comes after its call")
    role: Literal["system", "user", "assistant", "tool"]
    content: str | None
    tool_calls: list[StepToolCall] | None
    tool_call_id: str | None
    name: str | None
    metrics: StepMetrics | None
    created_at: datetime
    mode: Mode
    agent_id: str
    workflow_id: str
    sources: list[CitedSource] | None = Field(description="Pages that the text cites, or that the tool has found")


class StepPage(Schema):
    revision: int = Field(description="Where a stream of steps continues from this page")
    steps: list[StepOut]
    next: int | None = Field(description="The `after` of the next page; null on the last one")


class TextSegment(Schema):
    type: Literal["text", "reasoning"]
    content: str


class ToolSegment(Schema):
    type: Literal["tool"]
    tool_call_id: str
    tool_name: str
    arguments: Any
    status: Literal["running", "success", "error"]
    result: str | None
    error: str | None


class TurnSegments(Schema):
    """What the agent did in a turn, in order."""

    turn_id: str
    sequence: int = Field(description="The `sequence` of the turn's first message")
    segments: list[TextSegment | ToolSegment]


class SegmentPage(Schema):
    revision: int
    turns: list[TurnSegments]
    next: int | None = Field(description="The `after` of the next page; null on the last one")


@router.get("/sessions/{session_id}/steps", response=StepPage, operation_id="listSteps", summary="List steps")
def list_steps(request: ApiRequest, session_id: str, query: Query[StepQuery]) -> HttpResponse:
    """One step for each message that the model is sent, with metrics."""
    with reading_whole(request.user):
        session = session_of(request, session_id)
        return json_response(request, asdict(step_queries.page_of_steps(session, query.after, query.limit)))


@router.get("/sessions/{session_id}/segments", response=SegmentPage, operation_id="listSegments", summary="List turns")
def list_segments(request: ApiRequest, session_id: str, query: Query[TurnQuery]) -> HttpResponse:
    """What the agent did in each turn. A page holds whole turns."""
    with reading_whole(request.user):
        session = session_of(request, session_id)
        return json_response(request, asdict(step_queries.page_of_segments(session, query.after, query.limit)))


@router.get(
    "/sessions/{session_id}/steps/stream",
    operation_id="streamSteps",
    summary="Follow a session's steps",
    openapi_extra={"responses": EVENTS},
)
def stream_steps(
    request: ApiRequest, session_id: str, query: Query[StreamQuery], last_event: LastEvent = None
) -> StreamingHttpResponse:
    """Server-sent events of one type, `step_update`. See docs/protocol.md, section 2."""
    session, role = session_for(request.user, session_id)
    since = (last_event if last_event is not None else query.since) or 0
    if not knows_history(session, since):
        message = _("The session has no such revision. Discard all steps and start without a revision.")
        raise ServiceError("stale", message, revision=session.revision)
    require_stream_slot(request.user.pk)
    stream = StepStream(request.user, since, role, credential_of(request))
    return stream_response(session.pk, stream, stream.follow)
