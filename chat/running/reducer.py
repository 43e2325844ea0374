"""What an agent's events mean for the rows: pure, and at every instant able to commit what there is (RUN-08).

    reduce(state, event, now) -> (state, changes)

The text of a streaming message is not part of the state: it is in the rows' deltas, folded by `compact`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, assert_never

from agents.events import (
    AgentEvent,
    PartDone,
    ReasoningDelta,
    ResponseDone,
    ResponseStarted,
    RetryScheduled,
    RoundLimitReached,
    TextDelta,
    ToolReturned,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    Usage,
)
from agents.messages import Text, Thinking, ToolCall
from agents.safe_text import clean
from chat.projections.context import TOOL_INTERRUPTED, TOOL_LOST
from chat.running.changes import (
    AppendText,
    Change,
    CloseTurn,
    InsertMessage,
    Json,
    RecordUsage,
    TellCancelled,
    TellStatus,
    UpdateMessage,
)

RESUME_NOTE = "The server restarted while you were answering. Continue exactly where your last message was cut off."
EMPTY_ANSWER = "The model gave an empty answer. Try again, or choose another model."


@dataclass(frozen=True, slots=True)
class Now:
    """The instant of an event: wall time (aware), monotonic seconds, and a source of ids."""

    wall: datetime
    mono: float
    message_id: Callable[[], str]
    response_id: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Stopped:
    """Somebody pressed Stop."""

    sender: str = ""


@dataclass(frozen=True, slots=True)
class ProcessLost:
    """The process that ran the turn died; `resume` tells whether the turn goes on."""

    resume: bool


TurnEvent = AgentEvent | Stopped | ProcessLost


@dataclass(frozen=True, slots=True)
class OpenText:
    """A text or reasoning row that grows; `began` is monotonic."""

    id: str
    reasoning: bool
    began: float


@dataclass(frozen=True, slots=True)
class SpokenText:
    """A text row of the present response whose duration is known when the response is done."""

    id: str
    began: float


@dataclass(frozen=True, slots=True)
class OpenTool:
    """A tool call without a result; `began` is None while it is pending."""

    id: str
    call_id: str
    name: str
    began: float | None = None


@dataclass(frozen=True, slots=True)
class TurnState:
    """An open turn. `began` is monotonic; `lead` is what had passed of the turn before that, in seconds."""

    turn_id: str
    began: float
    lead: float = 0.0
    mode: str = "agent"
    agent_id: str = ""
    model: str = ""
    provider: str = ""
    context_window: int | None = None
    response_id: str = ""
    requested: float = 0.0
    first_token_ms: int | None = None
    open: OpenText | None = None
    spoken: tuple[SpokenText, ...] = ()
    reasoned: bool = False
    calls: tuple[ToolCall, ...] = ()
    tools: tuple[OpenTool, ...] = ()
    closed: bool = False


Reduced = tuple[TurnState, list[Change]]


def reduce(state: TurnState, event: TurnEvent, now: Now) -> Reduced:
    """Apply one event. A closed turn takes no more events: they change nothing."""
    if state.closed:
        return state, []
    match event:
        case TextDelta(text):
            return _delta(state, text, now, reasoning=False)
        case ReasoningDelta(text):
            return _delta(state, text, now, reasoning=True)
        case PartDone(part):
            return _part_done(state, part, now)
        case ResponseStarted(model, provider, window):
            return _response_started(state, model, provider, window, now), []
        case ResponseDone(_, usage):
            return _response_done(state, usage, now)
        case ToolStarted(call):
            return _tool_started(state, call, now)
        case ToolReturned(result):
            return _tool_returned(state, result.call_id, result.content, result.is_error, now)
        case RetryScheduled():
            return replace(state, requested=now.mono), []
        case RoundLimitReached(_, note):
            return state, [_note(state, note, now)]
        case TurnFinished():
            return _close(state, now, "complete")
        case TurnFailed(error):
            return _fail(state, str(error), now)
        case Stopped(sender):
            return _stop(state, sender, now)
        case ProcessLost(resume):
            return _lost(state, resume, now)
        case _:
            assert_never(event)


def _ms(since: float, now: Now) -> int:
    return max(0, round((now.mono - since) * 1000))


def _assistant(state: TurnState, now: Now, **fields: object) -> Json:
    return {
        "role": "assistant",
        "run_id": state.turn_id,
        "response_id": state.response_id,
        "mode": state.mode,
        "agent_id": state.agent_id,
        "model": state.model,
        "provider": state.provider,
        "timestamp": now.wall,
        **fields,
    }


def _response_started(state: TurnState, model: str, provider: str, window: int | None, now: Now) -> TurnState:
    return replace(
        state,
        model=model,
        provider=provider,
        context_window=window,
        response_id=now.response_id(),
        requested=now.mono,
        first_token_ms=None,
        spoken=(),
        reasoned=False,
        calls=(),
    )


def _first_token(state: TurnState, now: Now) -> TurnState:
    return state if state.first_token_ms is not None else replace(state, first_token_ms=_ms(state.requested, now))


def _delta(state: TurnState, text: str, now: Now, *, reasoning: bool) -> Reduced:
    if state.open is not None and state.open.reasoning == reasoning:
        return state, [AppendText(state.open.id, text, reasoning)]
    state, changes = _end_open(_first_token(state, now), now)
    row = now.message_id()
    kind = "reasoning" if reasoning else "text"
    changes.append(
        InsertMessage(
            row,
            "reasoning_delta" if reasoning else "text_delta",
            _assistant(state, now, type=kind, status="streaming", text=text),
        )
    )
    state = replace(state, open=OpenText(row, reasoning, now.mono))
    if reasoning:
        return replace(state, reasoned=True), changes
    return replace(state, spoken=(*state.spoken, SpokenText(row, now.mono))), changes


def _end_open(state: TurnState, now: Now, **fields: object) -> Reduced:
    """Complete the growing row because another part begins; a text's duration is known only at the end."""
    if state.open is None:
        return state, []
    values: Json = {"status": "complete", **fields}
    if state.open.reasoning:
        values["duration_ms"] = _ms(state.open.began, now)
    return replace(state, open=None), [UpdateMessage(state.open.id, "message_updated", values, compact=True)]


def _part_done(state: TurnState, part: Text | Thinking | ToolCall, now: Now) -> Reduced:
    state = _first_token(state, now)
    match part:
        case ToolCall():
            return replace(state, calls=(*state.calls, part)), []
        case Text():
            # The row stays open until another part begins or the response is done, which knows its duration.
            return state, []
        case Thinking():
            if state.open is not None and state.open.reasoning:
                return _end_open(state, now, provider_data=dict(part.data) or None)
            return _hidden_thinking(state, part, now)
        case _:
            assert_never(part)


def _hidden_thinking(state: TurnState, part: Thinking, now: Now) -> Reduced:
    """Keep reasoning that came without deltas (redacted): nothing to show, but it must be replayed (MSG-08)."""
    state, changes = _end_open(state, now)
    fields = _assistant(
        state, now, type="reasoning", status="complete", text=part.text, provider_data=dict(part.data) or None
    )
    return replace(state, reasoned=True), [*changes, InsertMessage(now.message_id(), "message_updated", fields)]


def _response_done(state: TurnState, usage: Usage, now: Now) -> Reduced:
    rows = [_spoken(state, text, now) for text in state.spoken]
    changes: list[Change] = []
    if state.open is not None and state.open.reasoning:
        state, changes = _end_open(state, now)
    tools = tuple(OpenTool(now.message_id(), call.id, call.name) for call in state.calls)
    changes.extend(rows)
    changes.extend(_called(state, tool, call, now) for tool, call in zip(tools, state.calls, strict=True))
    if rows or tools:
        changes[-1] = _with_fields(changes[-1], _metrics(state, usage))
        _announce(changes, len(changes) - len(tools) - (1 if rows else 0), state, usage, now)
    elif not state.reasoned:
        changes.append(_error(state, EMPTY_ANSWER, now))
    tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    changes.append(RecordUsage(state.provider, state.model, usage.input_tokens, state.context_window, tokens))
    return replace(state, open=None, spoken=(), calls=(), tools=tools), changes


def _spoken(state: TurnState, text: SpokenText, now: Now) -> UpdateMessage:
    grows = state.open is not None and state.open.id == text.id
    fields: Json = {"duration_ms": _ms(text.began, now), "status": "complete"}
    return UpdateMessage(text.id, "message_updated", fields, compact=grows)


def _called(state: TurnState, tool: OpenTool, call: ToolCall, now: Now) -> InsertMessage:
    fields = _assistant(
        state,
        now,
        type="tool_group",
        status="pending",
        tool_call_id=call.id,
        tool_name=call.name,
        arguments=_storable(call.arguments),
        provider_data={"raw_arguments": clean(call.raw)} if call.raw else None,
    )
    return InsertMessage(tool.id, "message_updated", fields)


def _storable(value: Any) -> Any:
    """The same JSON without the characters that no database keeps (MSG-12)."""
    match value:
        case str():
            return clean(value)
        case dict():
            return {clean(str(key)): _storable(item) for key, item in value.items()}
        case list():
            return [_storable(item) for item in value]
        case _:
            return value


def _metrics(state: TurnState, usage: Usage) -> Json:
    known = [count for count in (usage.input_tokens, usage.output_tokens) if count is not None]
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": sum(known) if known else None,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "first_token_latency_ms": state.first_token_ms,
    }


def _with_fields(change: Change, fields: Json) -> Change:
    assert isinstance(change, InsertMessage | UpdateMessage)
    return replace(change, fields={**change.fields, **fields})


def _announce(changes: list[Change], at: int, state: TurnState, usage: Usage, now: Now) -> None:
    """Make one change of the response its response_done (RUN-02): its last text, or its first call."""
    change = changes[at]
    assert isinstance(change, InsertMessage | UpdateMessage)
    began = state.spoken[0].began if state.spoken else state.requested
    details = {"duration_ms": _ms(began, now), "usage": _metrics(state, usage)}
    changes[at] = replace(change, name="response_done", details=details)


def _tool_started(state: TurnState, call: ToolCall, now: Now) -> Reduced:
    tool = _tool(state, call.id)
    if tool is None:
        return state, []
    tools = tuple(replace(each, began=now.mono) if each is tool else each for each in state.tools)
    update = UpdateMessage(tool.id, "tool_exec_start", {"status": "running", "timestamp": now.wall})
    return replace(state, tools=tools), [update, TellStatus("tool_calling", tool.name)]


def _tool_returned(state: TurnState, call_id: str, content: str, is_error: bool, now: Now) -> Reduced:
    tool = _tool(state, call_id)
    if tool is None:
        return state, []
    tools = tuple(each for each in state.tools if each is not tool)
    status = "failed" if is_error else "complete"
    update = _tool_ended(tool, status, content, is_error, now)
    running = [each.name for each in tools if each.began is not None]
    tell = TellStatus("tool_calling", running[-1]) if running else TellStatus("thinking")
    return replace(state, tools=tools), [update, tell]


def _tool(state: TurnState, call_id: str) -> OpenTool | None:
    return next((tool for tool in state.tools if tool.call_id == call_id), None)


def _tool_ended(tool: OpenTool, status: str, content: str, is_error: bool, now: Now) -> UpdateMessage:
    fields: Json = {"status": status, "result": content, "is_error": is_error, "ended_at": now.wall}
    if tool.began is not None:
        fields["duration_ms"] = _ms(tool.began, now)
    return UpdateMessage(tool.id, "tool_exec_end", fields)


def _note(state: TurnState, text: str, now: Now) -> InsertMessage:
    fields = {"type": "text", "role": "system", "run_id": state.turn_id, "mode": state.mode, "text": text}
    return InsertMessage(now.message_id(), "message_updated", {**fields, "timestamp": now.wall})


def _error(state: TurnState, text: str, now: Now) -> InsertMessage:
    fields = _assistant(state, now, type="error", status="failed", text=text)
    return InsertMessage(now.message_id(), "error", fields)


def _settle(state: TurnState, now: Now, tool_text: str, *, keep_pending: bool = False) -> Reduced:
    """Commit what there is: growing text as interrupted, tools without a result with one that says so."""
    changes: list[Change] = []
    if state.open is not None:
        fields = {"status": "interrupted", "duration_ms": _ms(state.open.began, now)}
        changes.append(UpdateMessage(state.open.id, "message_updated", fields, compact=True))
    kept = tuple(tool for tool in state.tools if keep_pending and tool.began is None)
    for tool in state.tools:
        if tool not in kept:
            changes.append(_tool_ended(tool, "interrupted", tool_text, True, now))
    return replace(state, open=None, tools=kept, spoken=(), calls=()), changes


def _close(state: TurnState, now: Now, status: str) -> Reduced:
    seconds = round(now.mono - state.began + state.lead, 3)
    done = InsertMessage(
        now.message_id(),
        "turn_done",
        {
            "type": "turn_done",
            "status": status,
            "run_id": state.turn_id,
            "mode": state.mode,
            "timestamp": now.wall,
            "duration_seconds": max(0.0, seconds),
        },
    )
    return replace(state, closed=True), [done, TellStatus("idle"), CloseTurn()]


def _fail(state: TurnState, text: str, now: Now) -> Reduced:
    state, changes = _settle(state, now, TOOL_INTERRUPTED)
    changes.append(_error(state, text, now))
    state, closing = _close(state, now, "failed")
    return state, [*changes, *closing]


def _stop(state: TurnState, sender: str, now: Now) -> Reduced:
    state, changes = _settle(state, now, TOOL_INTERRUPTED)
    state, closing = _close(state, now, "interrupted")
    return state, [*changes, closing[0], TellCancelled(state.turn_id, sender), *closing[1:]]


def _lost(state: TurnState, resume: bool, now: Now) -> Reduced:
    """Mend what a dead process left. Calls that never began are kept for the resumed run, none runs twice (RUN-15)."""
    cut = state.open is not None and not state.open.reasoning
    state, changes = _settle(state, now, TOOL_LOST, keep_pending=resume)
    if not resume:
        state, closing = _close(state, now, "interrupted")
        return state, [*changes, *closing]
    if cut:
        changes.append(_note(state, RESUME_NOTE, now))
    return state, changes
