"""A session as messages in the form of model APIs (steps) and as parts of turns (segments)."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Literal

from django.http import HttpResponse, StreamingHttpResponse
from django.utils.translation import gettext as _
from ninja import Query, Router, Schema
from pydantic import Field

from chat.access import session_for
from chat.api import message_fields
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
from chat.queries.messages import has_history_since
from chat.services.messages.senders import sender_in

router = Router(tags=["Steps"])
EVENTS = STREAM | {409: {"$ref": "#/components/responses/Problem"}}


class StepQuery(Schema):
    after: Number = Field(
        0,
        description="A `sequence`. Return the steps after it. For the next page, it is the `next` of the previous "
        "page.",
    )
    limit: int = Field(
        step_queries.MAX_STEPS, ge=1, le=step_queries.MAX_STEPS, description="The maximum number of steps on a page."
    )


class TurnQuery(Schema):
    after: Number = Field(
        0,
        description="The `sequence` of a message. Return the turns that begin after it. For the next page, it is the "
        "`next` of the previous page.",
    )
    limit: int = Field(
        step_queries.MAX_STEPS,
        ge=1,
        le=step_queries.MAX_STEPS,
        description="The number of messages to read. A page also contains the rest of its last turn.",
    )


class StepMetrics(Schema):
    """The metrics of a response of a model, or of a tool call. A field is null if its value is unknown."""

    duration_ms: int | None = Field(description="The duration of the text in milliseconds.")
    model_name: str = Field(description="The name of the model.")
    provider: str = Field(description="The name of the provider of the model.")
    input_tokens: message_fields.InputTokens
    output_tokens: message_fields.OutputTokens
    total_tokens: message_fields.TotalTokens
    cache_tokens: int | None = Field(description="The sum of `cache_read_tokens` and `cache_write_tokens`.")
    cache_read_tokens: message_fields.CacheReadTokens
    cache_write_tokens: message_fields.CacheWriteTokens
    first_token_latency_ms: message_fields.FirstTokenLatency
    tool_exec_time_ms: int | None = Field(description="The duration of the tool call in milliseconds.")
    tool_exec_start_at: datetime | None = Field(description="The time at which the tool call started.")
    tool_exec_end_at: datetime | None = Field(description="The time at which the tool call ended.")


class FunctionCall(Schema):
    """The function that a tool call names."""

    name: message_fields.ToolName
    arguments: str = Field(description="The arguments as JSON, as the model wrote them.")


class StepToolCall(Schema):
    """A tool call of the model."""

    id: message_fields.CallId
    type: Literal["function"]
    function: FunctionCall


class StepOut(Schema):
    """A message in the format of model APIs. The fields from `role` to `name` are those that the model gets."""

    id: str = Field(
        description="The id of the first message of the step. For the result of a tool call, it is `<message "
        "id>.result`."
    )
    session_id: str = Field(description="The id of the session.")
    run_id: str = Field(description="The id of the turn. Empty if the step belongs to no turn.")
    sequence: int = Field(
        description="The number that orders the steps of the session. It is unique, and the result of a tool call has "
        "a greater number than the call."
    )
    role: Literal["system", "user", "assistant", "tool"] = Field(description="The role of the message.")
    content: str | None = Field(description="The text. Null if there is none.")
    tool_calls: list[StepToolCall] | None = Field(description="The tool calls of the model. Null if there are none.")
    tool_call_id: str | None = Field(
        description="The id of the call whose result this is. Null unless the role is `tool`."
    )
    name: str | None = Field(description="The name of the tool. Null unless the role is `tool`.")
    metrics: StepMetrics | None = Field(
        description="The metrics of the response or of the tool call. Null for other roles."
    )
    created_at: message_fields.BeganAt
    mode: Mode = Field(description="The mode of the session when the message was written.")
    agent_id: str = Field(description="The `name` of the agent. Empty if there is none.")
    workflow_id: message_fields.ScheduleId
    sources: list[CitedSource] | None = Field(
        description="The pages that the text cites, or that the tool has found. Null if there are none."
    )


class StepPage(Schema):
    """A page of steps."""

    revision: int = Field(description="The revision of the session, from which `streamSteps` continues with `since`.")
    steps: list[StepOut] = Field(description="The steps in the order of their `sequence`.")
    next: int | None = Field(description="The `after` of the next page. Null on the last page.")


class TextSegment(Schema):
    """A text or reasoning of the agent."""

    type: Literal["text", "reasoning"] = Field(description="The type of the content.")
    content: str = Field(description="The text.")


class ToolSegment(Schema):
    """A tool call of the agent."""

    type: Literal["tool"]
    tool_call_id: message_fields.CallId
    tool_name: message_fields.ToolName
    arguments: message_fields.CallArguments
    status: Literal["running", "success", "error"] = Field(description="The status of the call.")
    result: str | None = Field(description="The result. Null unless the status is `success`.")
    error: str | None = Field(description="The error. Null unless the status is `error`.")


class TurnSegments(Schema):
    """What the agent did in one turn. A turn has several entries if messages of another turn interrupt it."""

    turn_id: str = Field(description="The id of the turn.")
    sequence: int = Field(description="The `sequence` of the first message of the turn.")
    segments: list[TextSegment | ToolSegment] = Field(
        description="The texts, the reasoning and the tool calls, in order."
    )


class SegmentPage(Schema):
    """A page of turns."""

    revision: int = Field(description="The revision of the session.")
    turns: list[TurnSegments] = Field(description="The turns in order. A page contains only complete turns.")
    next: int | None = Field(description="The `after` of the next page. Null on the last page.")


@router.get(
    "/sessions/{session_id}/steps", response=StepPage, operation_id="listSteps", summary="List the steps of a session"
)
def list_steps(request: ApiRequest, session_id: str, query: Query[StepQuery]) -> HttpResponse:
    """List the messages that models get, as steps with metrics."""
    with reading_whole(request.user) as until_read:
        session = session_of(request, session_id)
        return until_read(json_response(request, asdict(step_queries.page_of_steps(session, query.after, query.limit))))


@router.get(
    "/sessions/{session_id}/segments",
    response=SegmentPage,
    operation_id="listSegments",
    summary="List the turns of a session",
)
def list_segments(request: ApiRequest, session_id: str, query: Query[TurnQuery]) -> HttpResponse:
    """List the turns of a session with the texts, the reasoning and the tool calls of the agent."""
    with reading_whole(request.user) as until_read:
        session = session_of(request, session_id)
        return until_read(
            json_response(request, asdict(step_queries.page_of_segments(session, query.after, query.limit)))
        )


@router.get(
    "/sessions/{session_id}/steps/stream",
    operation_id="streamSteps",
    summary="Stream the steps of a session",
    openapi_extra={"responses": EVENTS},
)
def stream_steps(
    request: ApiRequest, session_id: str, query: Query[StreamQuery], last_event: LastEvent = None
) -> StreamingHttpResponse:
    """Stream the steps as server-sent events of the type `step_update`. docs/protocol.md, section 2, describes them.

    If the session does not have the revision `since`, the request is refused as `stale`.
    """
    session, role = session_for(request.user, session_id)
    since = (last_event if last_event is not None else query.since) or 0
    if not has_history_since(session, since):
        message = _("The session does not have this revision. Discard all steps and start without a revision.")
        raise ServiceError("stale", message, revision=session.revision)
    require_stream_slot(request.user.pk)
    name = sender_in(session, request.user)
    stream = StepStream(request.user, since, role, credential_of(request), name=name)
    return stream_response(session.pk, stream, stream.follow)
