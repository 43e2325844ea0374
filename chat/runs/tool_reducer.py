"""The row changes of tool calls: their state, their output, and their questions to users."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, assert_never

from agents.events import (
    ToolAnswered,
    ToolAsked,
    ToolDelegated,
    ToolOutput,
    ToolReturned,
    ToolStarted,
    ToolWaiting,
)
from agents.messages import Json, ToolCall, ToolResult
from agents.safe_text import clean
from chat.projections.context import own_call_id
from chat.runs.changes import AskPeople, Delegate, EndWait, ReportStatus, UpdateMessage, WithdrawQuestion
from chat.runs.turn_rows import Reduced, bounded_sources, milliseconds
from chat.runs.turn_state import Now, OpenTool, TurnState

MAX_ORIGIN_LENGTH = 200

ToolEvent = ToolStarted | ToolOutput | ToolAsked | ToolAnswered | ToolWaiting | ToolDelegated | ToolReturned


def reduce_tools(state: TurnState, event: ToolEvent, now: Now) -> Reduced:
    """Apply an event of a tool call. Events of unknown calls change nothing."""
    match event:
        case ToolStarted(call):
            return _tool_started(state, call, now)
        case ToolOutput(call_id, text, origin):
            return _tool_output(state, call_id, clean(text), clean(origin)[:MAX_ORIGIN_LENGTH])
        case ToolAsked(call_id, question):
            return _tool_asked(state, call_id, question)
        case ToolAnswered(call_id, _, withdrawn):
            return _tool_answered(state, call_id, withdrawn)
        case ToolWaiting():
            return _tool_waiting(state, event, now)
        case ToolDelegated(call, has_new_address):
            return _tool_delegated(state, call, has_new_address, now)
        case ToolReturned(result):
            return _tool_returned(state, result, now)
        case _:
            assert_never(event)


def _tool_started(state: TurnState, call: ToolCall, now: Now) -> Reduced:
    tool = find_tool(state, call.id)
    if tool is None:
        return state, []
    update = UpdateMessage(tool.id, "tool_exec_start", {"status": "running", "timestamp": now.wall})
    return _with_tool(state, tool, began=now.mono, waiting=False), [update, ReportStatus("tool_calling", tool.name)]


def _tool_output(state: TurnState, call_id: str, text: str, origin: str) -> Reduced:
    """Show the last part of a running tool's output, in place of the part that was shown before.

    If the call is interrupted, this output stays, so its origin is stored with it.
    """
    tool = find_tool(state, call_id)
    if tool is None:
        return state, []
    fields: Json = {"result": text, **({"origin": origin} if origin else {})}
    return _with_tool(state, tool, output=text), [UpdateMessage(tool.id, "message_updated", fields)]


def _tool_asked(state: TurnState, call_id: str, question: Json) -> Reduced:
    """Ask users the question of a running call. The call keeps running, so the session is not released."""
    tool = find_tool(state, call_id)
    if tool is None or tool.began is None:
        return state, []
    return _with_tool(state, tool, asking=True), [AskPeople(tool.id, question), ReportStatus("waiting")]


def _tool_answered(state: TurnState, call_id: str, withdrawn: str) -> Reduced:
    """Let a call continue. Its row already has the answer and the status, unless the question was withdrawn."""
    tool = find_tool(state, call_id)
    if tool is None or not tool.asking:
        return state, []
    return _with_tool(state, tool, asking=False), [WithdrawQuestion(tool.id, withdrawn)] if withdrawn else []


def _tool_waiting(state: TurnState, event: ToolWaiting, now: Now) -> Reduced:
    """Ask users. If a turn continues while a call still waits, the call asks again, which changes nothing."""
    tool = find_tool(state, event.call.id)
    if tool is None or tool.waiting:
        return state, []
    fields: Json = {"status": "waiting", "question": event.kind, "timestamp": now.wall}
    if not event.needs.is_plain:
        fields["approval"] = {"needed": event.needs.approvals, "approvers": event.needs.approvers, "decisions": []}
    if event.origin:
        fields["origin"] = clean(event.origin)[:MAX_ORIGIN_LENGTH]
    return _with_tool(state, tool, waiting=True), [UpdateMessage(tool.id, "message_updated", fields)]


def _tool_delegated(state: TurnState, call: ToolCall, has_new_address: bool, now: Now) -> Reduced:
    """Give a task to another agent, but only once: if a turn continues while that agent works, it calls it again."""
    tool = find_tool(state, call.id)
    if tool is None or tool.waiting:
        return state, []
    update = UpdateMessage(tool.id, "tool_exec_start", {"status": "waiting", "timestamp": now.wall})
    return _with_tool(state, tool, waiting=True, delegated=True), [
        update,
        Delegate(tool.id, has_new_address),
    ]


def _tool_returned(state: TurnState, result: ToolResult, now: Now) -> Reduced:
    tool = find_tool(state, result.call_id)
    if tool is None:
        return state, []
    tools = tuple(each for each in state.tools if each is not tool)
    status = "failed" if result.is_error else "complete"
    update = end_tool(tool, status, clean(result.content), result.is_error, now)
    found = tuple(source for source in bounded_sources(result.sources) if source not in state.sources)
    state = replace(state, sources=bounded_sources(state.sources + found))
    # The result replaces the output, and its origin that of the output.
    foreign: Json = {"origin": clean(result.origin)[:MAX_ORIGIN_LENGTH]} if result.origin or tool.output else {}
    if result.sources:
        foreign["sources"] = [source.to_json() for source in bounded_sources(result.sources)]
    if result.files:
        foreign["files"] = [file.to_json() for file in result.files]
    update = replace(update, fields=update.fields | foreign)
    running = [each.name for each in tools if each.began is not None]
    report = ReportStatus("tool_calling", running[-1]) if running else ReportStatus("thinking")
    if any(each.asking for each in tools):
        report = ReportStatus("waiting")
    return replace(state, tools=tools), [update, report]


def _with_tool(state: TurnState, tool: OpenTool, **values: Any) -> TurnState:
    """Return the state in which one of its calls has other values."""
    return replace(state, tools=tuple(replace(each, **values) if each is tool else each for each in state.tools))


def find_tool(state: TurnState, call_id: str) -> OpenTool | None:
    """Find a call by its id, or by the id that the context gives to a row with a missing or duplicate call id."""
    return next((tool for tool in state.tools if call_id in (tool.call_id, own_call_id(tool.id))), None)


def end_tool(tool: OpenTool, status: str, content: str, is_error: bool, now: Now) -> UpdateMessage:
    """End a call's row. A call that never ran has no duration."""
    fields: Json = {"status": status, "result": content, "is_error": is_error, "ended_at": now.wall}
    if tool.began is not None:
        fields["duration_ms"] = milliseconds(tool.began, now)
    return UpdateMessage(tool.id, "tool_exec_end", fields)


def end_open_tool(tool: OpenTool, result: str, if_run: str, now: Now) -> UpdateMessage | EndWait:
    """Interrupt a call without a result. `if_run` is the result if it runs or may run, `result` if it waits for users.

    A call that waits may have got its result since, in another transaction.
    """
    if not tool.waiting:
        return end_tool(tool, "interrupted", after_output(tool, if_run), True, now)
    ended = end_tool(tool, "interrupted", if_run if tool.delegated else result, True, now)
    return EndWait(ended.id, ended.fields, if_run)


def after_output(tool: OpenTool, text: str) -> str:
    """Return a text below the output that an interrupted tool has shown, so that the output is kept (RUN-08)."""
    return f"{tool.output.rstrip()}\n{text}" if tool.output.strip() else text
