"""The row changes of a response: its texts, its reasoning, the calls that the model writes, and its metrics."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import assert_never

from agents.errors import AgentError
from agents.events import (
    PartDone,
    ReasoningDelta,
    ResponseDone,
    ResponseStarted,
    RetryScheduled,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from agents.foreign_text import vendor_origin
from agents.i18n import gettext as _
from agents.messages import Json, Message, Source, Text, Thinking, ToolCall, ToolResult
from agents.safe_text import clean
from agents.sources import SourceNumbers, cited
from chat.projections.context import TOOL_NOT_WRITTEN
from chat.runs.changes import AppendText, Change, InsertMessage, RecordUsage, ReportStatus, UpdateMessage
from chat.runs.sanitize import sanitize_json, sanitize_name
from chat.runs.tool_reducer import MAX_ORIGIN_LENGTH
from chat.runs.turn_rows import Reduced, agent_columns, bounded_sources, insert_error, milliseconds
from chat.runs.turn_state import Now, OpenText, OpenTool, ResponseText, TurnState, WritingCall

EMPTY_ANSWER = _("The model gave an empty answer. Retry, or choose another model.")
# Stop reasons after which an empty response is an error. After other reasons, the turn continues or reports an error.
FINAL: tuple[StopReason, ...] = ("end", "tool_use")
CUT_SHORT: tuple[StopReason, ...] = ("max_tokens", "context", "refusal")

ResponseEvent = ResponseStarted | TextDelta | ReasoningDelta | ToolCallDelta | PartDone | ResponseDone | RetryScheduled


def reduce_response(state: TurnState, event: ResponseEvent, now: Now) -> Reduced:
    """Apply an event of a response, or of the wait before the next attempt at one."""
    match event:
        case TextDelta(text):
            return _text_delta(state, clean(text), now, reasoning=False)
        case ReasoningDelta(text):
            return _text_delta(state, clean(text), now, reasoning=True)
        case ToolCallDelta(key, name, text):
            return _call_delta(state, key, name, clean(text), now)
        case PartDone(part, key):
            return _part_done(state, part, key, now)
        case ResponseStarted(model, provider, window):
            waited: list[Change] = [ReportStatus("thinking")] if state.retrying else []
            return _response_started(state, model, provider, window, now), waited
        case ResponseDone(reason, usage):
            return _response_done(state, reason, usage.plausible(), now)
        case RetryScheduled(_, delay, error):
            state, dropped = drop_writing(state, now)
            wait = ReportStatus("thinking", activity="retrying", code=error.code, retry_in=math.ceil(delay))
            return replace(state, requested=now.mono, retrying=True), [*dropped, wait]
        case _:
            assert_never(event)


def _response_started(state: TurnState, model: str, provider: str, window: int | None, now: Now) -> TurnState:
    return replace(
        state,
        model=model,
        provider=provider,
        context_window=window,
        response_id=now.response_id(),
        requested=now.mono,
        first_token_ms=None,
        texts=(),
        last_row="",
        retrying=False,
    )


def _text_delta(state: TurnState, text: str, now: Now, *, reasoning: bool) -> Reduced:
    if state.open is not None and state.open.reasoning == reasoning and not state.open.whole:
        return state, [AppendText(state.open.id, text, reasoning)]
    state, changes = _end_open(_note_first_token(state, now), now)
    row = now.message_id()
    kind = "reasoning" if reasoning else "text"
    columns = agent_columns(state, now, type=kind, status="streaming", text=text)
    # While a text is written, it has all sources of the turn. At its end, it keeps those that it cites.
    if state.sources and not reasoning:
        columns["sources"] = [source.to_json() for source in state.sources]
    changes.append(InsertMessage(row, "reasoning_delta" if reasoning else "text_delta", columns))
    texts = state.texts if reasoning else (*state.texts, ResponseText(row, now.mono))
    return replace(state, open=OpenText(row, reasoning, now.mono), texts=texts, last_row=row), changes


def _note_first_token(state: TurnState, now: Now) -> TurnState:
    """Measure the latency of the response at its first event."""
    if state.first_token_ms is not None:
        return state
    return replace(state, first_token_ms=milliseconds(state.requested, now))


def _end_open(state: TurnState, now: Now, **fields: object) -> Reduced:
    """Complete the streaming row because another part begins."""
    if state.open is None:
        return state, []
    return replace(state, open=None), [_complete_row(state.open, now, **fields)]


def _complete_row(row: OpenText, now: Now, **fields: object) -> UpdateMessage:
    """Complete a streaming row. A text gets its duration when its response is done (MSG-05)."""
    values: Json = {"status": "complete", **fields}
    if row.reasoning:
        values["duration_ms"] = milliseconds(row.began, now)
    return UpdateMessage(row.id, "message_updated", values, compact=True)


def _call_delta(state: TurnState, key: str, name: str, text: str, now: Now) -> Reduced:
    """Show a call while the model writes its arguments. The context has the call only when it is complete."""
    if (call := _writing(state, key)) is not None:
        return state, [AppendText(call.id, text, reasoning=False)] if text else []
    state, changes = _end_open(_note_first_token(state, now), now)
    row = now.message_id()
    fields = agent_columns(state, now, type="tool_group", status="streaming", tool_name=sanitize_name(name), text=text)
    changes.append(InsertMessage(row, "message_updated", fields))
    return replace(state, writing=(*state.writing, WritingCall(row, key)), last_row=row), changes


def _writing(state: TurnState, key: str) -> WritingCall | None:
    return next((call for call in state.writing if call.key == key), None) if key else None


def drop_writing(state: TurnState, now: Now) -> Reduced:
    """End calls that will not be completed. They are shown, but the model does not get them (CTX-03)."""
    fields: Json = {"status": "interrupted", "is_error": True, "result": TOOL_NOT_WRITTEN, "ended_at": now.wall}
    changes: list[Change] = [UpdateMessage(call.id, "message_updated", fields, compact=True) for call in state.writing]
    return replace(state, writing=()), changes


def cut_off(row: OpenText, **fields: object) -> UpdateMessage:
    """End a streaming row in the middle of its text."""
    return UpdateMessage(row.id, "message_updated", {"status": "interrupted", **fields}, compact=True)


def _part_done(state: TurnState, part: Text | Thinking | ToolCall, key: str, now: Now) -> Reduced:
    state = _note_first_token(state, now)
    match part:
        case ToolCall():
            return _insert_call(state, part, _writing(state, key), now)
        case Text():
            # The row stays open until another part begins or the response is done, which sets its duration.
            return _complete_text(state, part), []
        case Thinking():
            if state.open is not None and state.open.reasoning:
                return _end_open(state, now, provider_data=sanitize_json(dict(part.data)) or None)
            return _hidden_thinking(state, part, now)
        case _:
            assert_never(part)


def _complete_text(state: TurnState, part: Text) -> TurnState:
    """Store the sources and the provider's data of a complete text. If it has data, further text gets a new row."""
    own: tuple[Source, ...] = ()
    if part.sources:  # the vendor names them without numbers; a known page keeps its number
        numbers = SourceNumbers([Message("user", (ToolResult("", "", sources=state.sources),))])
        own = tuple(dict.fromkeys(numbers.number(source.title, source.url) for source in part.sources))
    if not (part.data or own or state.sources):
        return state
    known = tuple(source for source in own if source not in state.sources)
    state = replace(state, sources=bounded_sources(state.sources + known))
    for text in state.texts[-1:]:
        named = {source.number: source for source in (*(text.sources or ()), *cited(part.text, state.sources), *own)}
        last = replace(
            text,
            data=part.data or text.data,
            sources=tuple(named[number] for number in sorted(named)),
            origin=text.origin or vendor_origin(part),
        )
        state = replace(state, texts=(*state.texts[:-1], last))
    is_whole = bool(part.data) and state.open is not None
    return replace(state, open=replace(state.open, whole=True)) if is_whole and state.open else state


def _hidden_thinking(state: TurnState, part: Thinking, now: Now) -> Reduced:
    """Store reasoning without deltas (redacted). It is not shown, but must be sent back to the model (MSG-08)."""
    state, changes = _end_open(state, now)
    row, data = now.message_id(), sanitize_json(dict(part.data)) or None
    fields = agent_columns(state, now, type="reasoning", status="complete", text=clean(part.text), provider_data=data)
    return replace(state, last_row=row), [*changes, InsertMessage(row, "message_updated", fields)]


def _insert_call(state: TurnState, call: ToolCall, written: WritingCall | None, now: Now) -> Reduced:
    """Insert a tool call at its place in the response. It is executed when the response is done (MSG-08, UI-01).

    `written` is its row, if it got one when the model began to write it.
    """
    state, changes = _end_open(state, now)
    tool = OpenTool(written.id if written else now.message_id(), call.id, sanitize_name(call.name))
    raw = {"raw_arguments": call.raw} if call.raw else {}
    fields = agent_columns(
        state,
        now,
        type="tool_group",
        status="pending",
        tool_call_id=sanitize_name(call.id),
        tool_name=tool.name,
        arguments=sanitize_json(call.arguments),
        provider_data=sanitize_json({**call.data, **raw}) or None,
    )
    if written is None:
        changes.append(InsertMessage(tool.id, "message_updated", fields))
        return replace(state, tools=(*state.tools, tool), last_row=tool.id), changes
    del fields["timestamp"]
    changes.append(UpdateMessage(tool.id, "message_updated", {**fields, "text": ""}, compact=True))
    writing = tuple(each for each in state.writing if each is not written)
    return replace(state, tools=(*state.tools, tool), writing=writing), changes


def _response_done(state: TurnState, reason: StopReason, usage: Usage, now: Now) -> Reduced:
    state, dropped = drop_writing(state, now)
    counts = [count for count in (usage.input_tokens, usage.output_tokens) if count is not None]
    metrics = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": sum(counts) if counts else None,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "first_token_latency_ms": state.first_token_ms,
    }
    rows = [_complete_row(state.open, now)] if state.open is not None and state.open.reasoning else []
    rows.extend(_text_done(state, text, now, cut=reason in CUT_SHORT) for text in state.texts)
    changes: list[Change] = [*dropped, *_add_metrics(rows, state, metrics, now)]
    was_empty = not (state.texts or state.tools) and reason in FINAL
    if was_empty:
        error = AgentError(EMPTY_ANSWER)
        changes.append(insert_error(state, error, now, **({} if state.last_row else metrics)))
    changes.append(RecordUsage(state.provider, state.model, usage.input_tokens, state.context_window, sum(counts)))
    return replace(state, open=None, texts=(), was_empty=was_empty), changes


def _text_done(state: TurnState, text: ResponseText, now: Now, *, cut: bool) -> UpdateMessage:
    """Complete a text at the end of its response. A text that was cut off there can be continued (RUN-12)."""
    is_streaming = state.open is not None and state.open.id == text.id
    status = "interrupted" if cut and is_streaming else "complete"
    fields: Json = {"duration_ms": milliseconds(text.began, now), "status": status}
    if text.data and status == "complete":
        fields["provider_data"] = sanitize_json(dict(text.data))
    if text.sources is not None:
        fields["sources"] = [source.to_json() for source in text.sources] or None
    if text.origin:
        fields["origin"] = clean(text.origin)[:MAX_ORIGIN_LENGTH]
    return UpdateMessage(text.id, "message_updated", fields, compact=is_streaming)


def _add_metrics(rows: list[UpdateMessage], state: TurnState, metrics: Json, now: Now) -> list[UpdateMessage]:
    """Add the metrics to the response's last row (MSG-06), and report response_done (RUN-02) with the last text.

    Without a text, the last row reports response_done.
    """
    if state.last_row and all(row.id != state.last_row for row in rows):
        rows = [*rows, UpdateMessage(state.last_row, "message_updated", {})]
    reporting_row = state.texts[-1].id if state.texts else state.last_row
    began = state.texts[0].began if state.texts else state.requested
    details = {"duration_ms": milliseconds(began, now), "usage": metrics}
    rows = [replace(row, fields=row.fields | metrics) if row.id == state.last_row else row for row in rows]
    return [replace(row, name="response_done", details=details) if row.id == reporting_row else row for row in rows]
