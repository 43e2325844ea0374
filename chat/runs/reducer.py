"""Turn events of the agent into row changes, as a pure function. The turn can be stopped at any moment (RUN-08).

    reduce(state, event, now) -> (state, changes)

The state does not have the text of a streaming message. It is in the message's delta rows, which `compact` joins.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import assert_never

from agents.errors import AgentError
from agents.events import (
    FilesChanged,
    FinishReason,
    PartDone,
    ReasoningDelta,
    ResponseDone,
    ResponseStarted,
    RetryScheduled,
    RoundLimitReached,
    StopReason,
    TextDelta,
    ToolAnswered,
    ToolAsked,
    ToolCallDelta,
    ToolDelegated,
    ToolOutput,
    ToolReturned,
    ToolStarted,
    ToolWaiting,
    TurnFailed,
    TurnFinished,
    Usage,
)
from agents.i18n import TranslatableText
from agents.i18n import gettext as _
from agents.messages import Json, Message, Source, Text, Thinking, ToolCall, ToolResult
from agents.safe_text import clean
from agents.sources import MOST_SOURCES, SourceNumbers, cited, is_source_address
from chat.projections.context import (
    NOT_ANSWERED,
    TOOL_INTERRUPTED,
    TOOL_LOST,
    TOOL_NOT_BEGUN,
    TOOL_NOT_WRITTEN,
    own_call_id,
)
from chat.runs.changes import (
    AppendText,
    AskPeople,
    Change,
    CloseTurn,
    Delegate,
    InsertMessage,
    PauseTurn,
    RecordUsage,
    ReportCancelled,
    ReportFiles,
    ReportStatus,
    UpdateMessage,
    WithdrawQuestion,
)
from chat.runs.sanitize import sanitize_json, sanitize_name, sanitize_usage
from chat.runs.turn_state import (
    Now,
    OpenText,
    OpenTool,
    ProcessLost,
    ResponseText,
    Stopped,
    TurnEvent,
    TurnState,
    WritingCall,
)

RESUME_NOTE = _("The server restarted while you were answering. Continue exactly where your last message was cut off.")
# The note is an instruction to the model. People read what it means for them.
RESUME_NOTE_SHOWN = _("The server restarted. The answer continues below.")
EMPTY_ANSWER = _("The model gave an empty answer. Try again, or choose another model.")
# Stop reasons after which a response without content is an error. After others more follows, or an error is reported.
FINAL: tuple[StopReason, ...] = ("end", "tool_use")
CUT_SHORT: tuple[StopReason, ...] = ("max_tokens", "refusal")

LONGEST_ORIGIN = 200

Reduced = tuple[TurnState, list[Change]]


def reduce(state: TurnState, event: TurnEvent, now: Now) -> Reduced:
    """Apply one event. Events of a closed turn change nothing."""
    if state.closed:
        return state, []
    match event:
        case TextDelta(text):
            return _delta(state, clean(text), now, reasoning=False)
        case ReasoningDelta(text):
            return _delta(state, clean(text), now, reasoning=True)
        case ToolCallDelta(key, name, text):
            return _call_delta(state, key, name, clean(text), now)
        case PartDone(part, key):
            return _part_done(state, part, key, now)
        case ResponseStarted(model, provider, window):
            waited: list[Change] = [ReportStatus("thinking")] if state.retrying else []
            return _response_started(state, model, provider, window, now), waited
        case ResponseDone(reason, usage):
            return _response_done(state, reason, sanitize_usage(usage), now)
        case ToolStarted(call):
            return _tool_started(state, call, now)
        case ToolOutput(call_id, text):
            return _tool_output(state, call_id, clean(text))
        case ToolAsked(call_id, question):
            return _tool_asked(state, call_id, question)
        case ToolAnswered(call_id, _, withdrawn):
            return _tool_answered(state, call_id, withdrawn)
        case FilesChanged():
            return state, [ReportFiles()]
        case ToolWaiting():
            return _tool_waiting(state, event, now)
        case ToolDelegated(call):
            return _tool_delegated(state, call, now)
        case ToolReturned(result):
            return _tool_returned(state, result, now)
        case RetryScheduled(_, delay, error):
            state, dropped = _drop_writing(state, now)
            wait = ReportStatus("thinking", activity="retrying", code=error.code, retry_in=math.ceil(delay))
            return replace(state, requested=now.mono, retrying=True), [*dropped, wait]
        case RoundLimitReached(_, note):
            return state, [_note(state, note, now)]
        case TurnFinished(reason):
            return _finish(state, reason, now)
        case TurnFailed(error):
            return _fail(state, error, now)
        case Stopped():
            return _stop(state, now)
        case ProcessLost(resume, error):
            return _lost(state, resume, error, now)
        case _:
            assert_never(event)


def _ms(since: float, now: Now) -> int:
    return max(0, round((now.mono - since) * 1000))


def _assistant(state: TurnState, now: Now, **fields: object) -> Json:
    return {
        "role": "assistant",
        "turn_id": state.turn_id,
        "response_id": state.response_id,
        "mode": state.mode,
        "agent_id": state.agent_id,
        **({"sender": state.sender} if state.sender else {}),
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
        texts=(),
        last_row="",
        retrying=False,
    )


def _first_token(state: TurnState, now: Now) -> TurnState:
    return state if state.first_token_ms is not None else replace(state, first_token_ms=_ms(state.requested, now))


def _delta(state: TurnState, text: str, now: Now, *, reasoning: bool) -> Reduced:
    if state.open is not None and state.open.reasoning == reasoning and not state.open.whole:
        return state, [AppendText(state.open.id, text, reasoning)]
    state, changes = _end_open(_first_token(state, now), now)
    row = now.message_id()
    kind = "reasoning" if reasoning else "text"
    changes.append(
        InsertMessage(
            row,
            "reasoning_delta" if reasoning else "text_delta",
            _assistant(state, now, type=kind, status="streaming", text=text, **_citable(state, reasoning)),
        )
    )
    texts = state.texts if reasoning else (*state.texts, ResponseText(row, now.mono))
    return replace(state, open=OpenText(row, reasoning, now.mono), texts=texts, last_row=row), changes


def _citable(state: TurnState, reasoning: bool) -> Json:
    """Give a text all pages of the turn while it is written. At its end it keeps those that it cites."""
    return {"sources": [source.to_json() for source in state.sources]} if state.sources and not reasoning else {}


def _end_open(state: TurnState, now: Now, **fields: object) -> Reduced:
    """Complete the streaming row because another part begins."""
    if state.open is None:
        return state, []
    return replace(state, open=None), [_ended(state.open, now, **fields)]


def _ended(row: OpenText, now: Now, **fields: object) -> UpdateMessage:
    """Complete a streaming row. A text gets its duration when its response is done (MSG-05)."""
    values: Json = {"status": "complete", **fields}
    if row.reasoning:
        values["duration_ms"] = _ms(row.began, now)
    return UpdateMessage(row.id, "message_updated", values, compact=True)


def _call_delta(state: TurnState, key: str, name: str, text: str, now: Now) -> Reduced:
    """Show a call while the model writes its arguments. It is not a call for the model before it is complete."""
    if (call := _writing(state, key)) is not None:
        return state, [AppendText(call.id, text, reasoning=False)] if text else []
    state, changes = _end_open(_first_token(state, now), now)
    row = now.message_id()
    fields = _assistant(state, now, type="tool_group", status="streaming", tool_name=sanitize_name(name), text=text)
    changes.append(InsertMessage(row, "message_updated", fields))
    return replace(state, writing=(*state.writing, WritingCall(row, key)), last_row=row), changes


def _writing(state: TurnState, key: str) -> WritingCall | None:
    return next((call for call in state.writing if call.key == key), None) if key else None


def _drop_writing(state: TurnState, now: Now) -> Reduced:
    """End calls that will not be completed. They are shown, but the model does not get them (CTX-03)."""
    changes: list[Change] = [_unwritten(call, now) for call in state.writing]
    return replace(state, writing=()), changes


def _unwritten(call: WritingCall, now: Now) -> UpdateMessage:
    fields: Json = {"status": "interrupted", "is_error": True, "result": TOOL_NOT_WRITTEN, "ended_at": now.wall}
    return UpdateMessage(call.id, "message_updated", fields, compact=True)


def _part_done(state: TurnState, part: Text | Thinking | ToolCall, key: str, now: Now) -> Reduced:
    state = _first_token(state, now)
    match part:
        case ToolCall():
            return _called(state, part, _writing(state, key), now)
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
    """Store the sources of a complete text, and the provider's data. A text that follows data gets its own row."""
    own = _numbered(part.sources, state.sources)
    if not (part.data or own or state.sources):
        return state
    known = tuple(source for source in own if source not in state.sources)
    state = replace(state, sources=_bounded(state.sources + known))
    for text in state.texts[-1:]:
        named = {source.number: source for source in (*(text.sources or ()), *cited(part.text, state.sources), *own)}
        last = replace(text, data=part.data or text.data, sources=tuple(named[number] for number in sorted(named)))
        state = replace(state, texts=(*state.texts[:-1], last))
    is_whole = bool(part.data) and state.open is not None
    return replace(state, open=replace(state.open, whole=True)) if is_whole and state.open else state


def _numbered(cited_by_vendor: tuple[Source, ...], known: tuple[Source, ...]) -> tuple[Source, ...]:
    """Give numbers to the sources that a vendor names; a page that is known has one."""
    numbers = SourceNumbers([Message("user", (ToolResult("", "", sources=known),))])
    return tuple(dict.fromkeys(numbers.number(source.title, source.url) for source in cited_by_vendor))


def _bounded(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    return tuple(source for source in sources if is_source_address(source.url))[-MOST_SOURCES:]


def _hidden_thinking(state: TurnState, part: Thinking, now: Now) -> Reduced:
    """Store reasoning that came without deltas (redacted). It is not shown, but must be replayed (MSG-08)."""
    state, changes = _end_open(state, now)
    row, data = now.message_id(), sanitize_json(dict(part.data)) or None
    fields = _assistant(state, now, type="reasoning", status="complete", text=clean(part.text), provider_data=data)
    return replace(state, last_row=row), [*changes, InsertMessage(row, "message_updated", fields)]


def _called(state: TurnState, call: ToolCall, written: WritingCall | None, now: Now) -> Reduced:
    """Insert a tool call where the model made it; it is executed when the response is done (MSG-08, UI-01).

    `written`: it has a row since the model began to write it.
    """
    state, changes = _end_open(state, now)
    tool = OpenTool(written.id if written else now.message_id(), call.id, sanitize_name(call.name))
    raw = {"raw_arguments": call.raw} if call.raw else {}
    fields = _assistant(
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
    state, dropped = _drop_writing(state, now)
    metrics = _metrics(state, usage)
    rows = [_ended(state.open, now)] if state.open is not None and state.open.reasoning else []
    rows.extend(_text_done(state, text, now, cut=reason in CUT_SHORT) for text in state.texts)
    changes: list[Change] = [*dropped, *_summarised(rows, state, metrics, now)]
    if not (state.texts or state.tools) and reason in FINAL:
        error = AgentError(EMPTY_ANSWER)
        changes.append(_error(state, error, now, **({} if state.last_row else metrics)))
    tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    changes.append(RecordUsage(state.provider, state.model, usage.input_tokens, state.context_window, tokens))
    return replace(state, open=None, texts=()), changes


def _text_done(state: TurnState, text: ResponseText, now: Now, *, cut: bool) -> UpdateMessage:
    """End a text with its response. A text that was cut off there can be continued (RUN-12)."""
    is_streaming = state.open is not None and state.open.id == text.id
    status = "interrupted" if cut and is_streaming else "complete"
    fields: Json = {"duration_ms": _ms(text.began, now), "status": status}
    if text.data and status == "complete":
        fields["provider_data"] = sanitize_json(dict(text.data))
    if text.sources is not None:
        fields["sources"] = [source.to_json() for source in text.sources] or None
    return UpdateMessage(text.id, "message_updated", fields, compact=is_streaming)


def _summarised(rows: list[UpdateMessage], state: TurnState, metrics: Json, now: Now) -> list[UpdateMessage]:
    """Add the metrics to the response's last row (MSG-06), and report response_done (RUN-02) with the last text.

    Without a text, the last row reports response_done.
    """
    if state.last_row and all(row.id != state.last_row for row in rows):
        rows = [*rows, UpdateMessage(state.last_row, "message_updated", {})]
    reporting_row = state.texts[-1].id if state.texts else state.last_row
    began = state.texts[0].began if state.texts else state.requested
    details = {"duration_ms": _ms(began, now), "usage": metrics}
    rows = [replace(row, fields=row.fields | metrics) if row.id == state.last_row else row for row in rows]
    return [replace(row, name="response_done", details=details) if row.id == reporting_row else row for row in rows]


def _metrics(state: TurnState, usage: Usage) -> Json:
    known = [count for count in (usage.input_tokens, usage.output_tokens) if count is not None]
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": sum(known) if known else None,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "first_token_latency_ms": state.first_token_ms,
    }


def _tool_started(state: TurnState, call: ToolCall, now: Now) -> Reduced:
    tool = find_tool(state, call.id)
    if tool is None:
        return state, []
    begun = replace(tool, began=now.mono, waiting=False)
    tools = tuple(begun if each is tool else each for each in state.tools)
    update = UpdateMessage(tool.id, "tool_exec_start", {"status": "running", "timestamp": now.wall})
    return replace(state, tools=tools), [update, ReportStatus("tool_calling", tool.name)]


def _tool_output(state: TurnState, call_id: str, text: str) -> Reduced:
    """Show the end of a running tool's output, in place of what was shown before."""
    tool = find_tool(state, call_id)
    if tool is None:
        return state, []
    tools = tuple(replace(tool, output=text) if each is tool else each for each in state.tools)
    return replace(state, tools=tools), [UpdateMessage(tool.id, "message_updated", {"result": text})]


def _tool_asked(state: TurnState, call_id: str, question: Json) -> Reduced:
    """Ask people what a running call wants to know. The call keeps its process."""
    tool = find_tool(state, call_id)
    if tool is None or tool.began is None:
        return state, []
    tools = tuple(replace(tool, asking=True) if each is tool else each for each in state.tools)
    return replace(state, tools=tools), [AskPeople(tool.id, question), ReportStatus("waiting")]


def _tool_answered(state: TurnState, call_id: str, withdrawn: str) -> Reduced:
    """Let a call go on. The answer is in its row already, with the status; only a withdrawal is not."""
    tool = find_tool(state, call_id)
    if tool is None or not tool.asking:
        return state, []
    tools = tuple(replace(tool, asking=False) if each is tool else each for each in state.tools)
    return replace(state, tools=tools), [WithdrawQuestion(tool.id, withdrawn)] if withdrawn else []


def _tool_waiting(state: TurnState, event: ToolWaiting, now: Now) -> Reduced:
    """Ask people. A turn that goes on while other calls still wait asks again, which changes nothing."""
    tool = find_tool(state, event.call.id)
    if tool is None or tool.waiting:
        return state, []
    tools = tuple(replace(tool, waiting=True) if each is tool else each for each in state.tools)
    fields: Json = {"status": "waiting", "question": event.kind, "timestamp": now.wall}
    if not event.needs.is_plain:
        fields["approval"] = {"needed": event.needs.approvals, "approvers": event.needs.approvers, "decisions": []}
    if event.origin:
        fields["origin"] = clean(event.origin)[:LONGEST_ORIGIN]
    return replace(state, tools=tools), [UpdateMessage(tool.id, "message_updated", fields)]


def _tool_delegated(state: TurnState, call: ToolCall, now: Now) -> Reduced:
    """Give a task to another agent, once: a turn that goes on while it works calls it again."""
    tool = find_tool(state, call.id)
    if tool is None or tool.waiting:
        return state, []
    tools = tuple(replace(tool, waiting=True, delegated=True) if each is tool else each for each in state.tools)
    update = UpdateMessage(tool.id, "tool_exec_start", {"status": "waiting", "timestamp": now.wall})
    return replace(state, tools=tools), [update, Delegate(tool.id), ReportStatus("tool_calling", tool.name)]


def _tool_returned(state: TurnState, result: ToolResult, now: Now) -> Reduced:
    tool = find_tool(state, result.call_id)
    if tool is None:
        return state, []
    tools = tuple(each for each in state.tools if each is not tool)
    status = "failed" if result.is_error else "complete"
    update = _tool_ended(tool, status, clean(result.content), result.is_error, now)
    found = tuple(source for source in _bounded(result.sources) if source not in state.sources)
    state = replace(state, sources=_bounded(state.sources + found))
    foreign: Json = {"origin": clean(result.origin)[:LONGEST_ORIGIN]} if result.origin else {}
    if result.sources:
        foreign["sources"] = [source.to_json() for source in _bounded(result.sources)]
    if result.files:
        foreign["files"] = [file.to_json() for file in result.files]
    update = replace(update, fields=update.fields | foreign)
    running = [each.name for each in tools if each.began is not None]
    tell = ReportStatus("tool_calling", running[-1]) if running else ReportStatus("thinking")
    if any(each.asking for each in tools):
        tell = ReportStatus("waiting")
    return replace(state, tools=tools), [update, tell]


def find_tool(state: TurnState, call_id: str) -> OpenTool | None:
    """Find a call by its id, or by the id that the context gives to a row with a missing or duplicate call id."""
    return next((tool for tool in state.tools if call_id in (tool.call_id, own_call_id(tool.id))), None)


def _tool_ended(tool: OpenTool, status: str, content: str, is_error: bool, now: Now) -> UpdateMessage:
    fields: Json = {"status": status, "result": content, "is_error": is_error, "ended_at": now.wall}
    if tool.began is not None:
        fields["duration_ms"] = _ms(tool.began, now)
    return UpdateMessage(tool.id, "tool_exec_end", fields)


def _after_output(tool: OpenTool, text: str) -> str:
    """Keep what a tool has shown until it was interrupted (RUN-08)."""
    return f"{tool.output.rstrip()}\n{text}" if tool.output.strip() else text


def _note(state: TurnState, text: str, now: Now, shown: TranslatableText | None = None) -> InsertMessage:
    """Insert a note for the model. People see `shown` in its place if there is one."""
    fields = {"type": "text", "role": "system", "turn_id": state.turn_id, "mode": state.mode, "timestamp": now.wall}
    more = _translatable(text)
    if more and shown is not None:
        more["provider_data"]["words"]["shown"] = shown.to_json()
    return InsertMessage(now.message_id(), "message_updated", {**fields, "text": text, **more})


def _error(state: TurnState, error: AgentError, now: Now, **more: object) -> InsertMessage:
    """Insert an error row with the error's code and remedy (RUN-10)."""
    text = error.words
    data = {**_translatable(text).get("provider_data", {}), "error": {"code": error.code, "remedy": error.remedy}}
    fields = _assistant(state, now, type="error", status="failed", text=clean(text), provider_data=data, **more)
    return InsertMessage(now.message_id(), "error", fields)


def _translatable(text: str) -> Json:
    """Store a text's translatable parts, so that users get it in their own language (UI-13)."""
    return {"provider_data": {"words": sanitize_json(text.to_json())}} if isinstance(text, TranslatableText) else {}


def _settle(state: TurnState, now: Now) -> Reduced:
    """Complete all open rows: streaming text and tools without a result become interrupted."""
    state, changes = _drop_writing(state, now)
    for text in state.texts:  # complete texts of the response, which have no duration yet
        if state.open is None or state.open.id != text.id:
            changes.append(UpdateMessage(text.id, "message_updated", {"duration_ms": _ms(text.began, now)}))
    if state.open is not None:
        measured = {"duration_ms": _ms(state.open.began, now), "first_token_latency_ms": state.first_token_ms}
        changes.append(_cut(state.open, **measured))
    for tool in state.tools:
        result = NOT_ANSWERED if tool.waiting and not tool.delegated else _after_output(tool, TOOL_INTERRUPTED)
        changes.append(_tool_ended(tool, "interrupted", result, True, now))
    return replace(state, open=None, tools=(), texts=()), changes


def _cut(row: OpenText, **fields: object) -> UpdateMessage:
    return UpdateMessage(row.id, "message_updated", {"status": "interrupted", **fields}, compact=True)


def _close(state: TurnState, now: Now, status: str, *, reason: str = "", for_queued: bool = False) -> Reduced:
    seconds = round(now.mono - state.began + state.elapsed_before, 3)
    done = InsertMessage(
        now.message_id(),
        "turn_done",
        {
            "type": "turn_done",
            "status": status,
            "end_reason": reason,
            "turn_id": state.turn_id,
            "mode": state.mode,
            "timestamp": now.wall,
            "duration_seconds": max(0.0, seconds),
        },
    )
    return replace(state, closed=True), [done, ReportStatus("idle"), CloseTurn(for_queued)]


def _finish(state: TurnState, reason: FinishReason, now: Now) -> Reduced:
    if reason == "waiting":
        return replace(state, closed=True), [PauseTurn()]
    state, changes = _settle(state, now)
    state, closing = _close(state, now, "complete", for_queued=reason == "pending")
    return state, [*changes, *closing]


def _fail(state: TurnState, error: AgentError, now: Now) -> Reduced:
    state, changes = _settle(state, now)
    changes.append(_error(state, error, now))
    state, closing = _close(state, now, "failed")
    return state, [*changes, *closing]


def _stop(state: TurnState, now: Now) -> Reduced:
    state, changes = _settle(state, now)
    state, closing = _close(state, now, "interrupted", reason="stopped")
    return state, [*changes, closing[0], ReportCancelled(state.turn_id), *closing[1:]]


def _lost(state: TurnState, resume: bool, error: AgentError | None, now: Now) -> Reduced:
    """Repair the rows of a dead process. A resumed run executes calls that had not started; none runs twice (RUN-15).

    The tools of a response that was cut off are not executed, because the response is incomplete. Nothing gets a
    duration, because the time of the process's end is unknown.
    """
    was_cut = state.open is not None or bool(state.writing)
    state, changes = _drop_writing(state, now)
    changes.extend([_cut(state.open)] if state.open is not None else [])
    kept = tuple(tool for tool in state.tools if resume and not was_cut and tool.began is None)
    changes.extend(_tool_lost(tool, now) for tool in state.tools if tool not in kept)
    if resume and was_cut and state.texts:
        changes.append(_note(state, RESUME_NOTE, now, RESUME_NOTE_SHOWN))
    begun = any(tool.began is not None for tool in state.tools)
    state = replace(state, open=None, tools=kept, texts=())
    if resume:
        return state, [*changes, *([ReportStatus("thinking")] if begun else [])]
    if error is None:
        state, closing = _close(state, now, "interrupted", reason="restarted")
        return state, [*changes, *closing]
    changes.append(_error(state, error, now))
    state, closing = _close(state, now, "failed")
    return state, [*changes, *closing]


def _tool_lost(tool: OpenTool, now: Now) -> UpdateMessage:
    text = TOOL_NOT_BEGUN if tool.began is None and not tool.delegated else TOOL_LOST
    return _tool_ended(replace(tool, began=None), "interrupted", _after_output(tool, text), True, now)
