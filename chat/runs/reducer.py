"""The pure function from events of the agent to row changes. The turn can be stopped at any moment (RUN-08).

    reduce(state, event, now) -> (state, changes)

This module handles the end of a turn. response_reducer.py handles events of a response, and tool_reducer.py those of
tools.

The state does not have the text of a streaming message. That text is in the message's delta rows until `compact`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from agents.errors import AgentError
from agents.events import FilesChanged, FinishReason, RoundLimitReached, TurnFailed, TurnFinished
from agents.i18n import gettext as _
from chat.projections.context import NOT_ANSWERED, TOOL_INTERRUPTED, TOOL_LOST, TOOL_NOT_BEGUN
from chat.runs.changes import (
    Change,
    CloseTurn,
    InsertMessage,
    ReportCancelled,
    ReportFiles,
    ReportStatus,
    UpdateMessage,
    WaitForAnswers,
)
from chat.runs.response_reducer import ResponseEvent, cut_off, drop_writing, reduce_response
from chat.runs.tool_reducer import ToolEvent, end_open_tool, reduce_tools
from chat.runs.turn_rows import Reduced, insert_error, insert_note, milliseconds
from chat.runs.turn_state import Now, OpenTool, ProcessLost, Stopped, TurnEvent, TurnState

RESUME_NOTE = _("The server restarted while you were answering. Continue exactly where your last message was cut off.")
# The note is an instruction to the model. Users see this text in its place.
RESUME_NOTE_SHOWN = _("The server restarted. The answer continues below.")


def reduce(state: TurnState, event: TurnEvent, now: Now) -> Reduced:
    """Apply one event. Events of a closed turn change nothing."""
    if state.closed:
        return state, []
    if isinstance(event, ResponseEvent):
        return reduce_response(state, event, now)
    if isinstance(event, ToolEvent):
        return reduce_tools(state, event, now)
    match event:
        case FilesChanged():
            return state, [ReportFiles()]
        case RoundLimitReached(_, note):
            return state, [insert_note(state, note, now)]
        case TurnFinished(reason):
            return _finish(state, reason, now)
        case TurnFailed(error):
            return _fail(state, error, now)
        case Stopped():
            return _stop(state, now)
        case ProcessLost(resume, error):
            return _repair(state, resume, error, now)
        case _:
            assert_never(event)


def _settle(state: TurnState, now: Now) -> Reduced:
    """Complete all open rows: streaming text and tools without a result become interrupted."""
    state, changes = drop_writing(state, now)
    for text in state.texts:  # complete texts of the response have no duration yet
        if state.open is None or state.open.id != text.id:
            changes.append(UpdateMessage(text.id, "message_updated", {"duration_ms": milliseconds(text.began, now)}))
    if state.open is not None:
        measured = {"duration_ms": milliseconds(state.open.began, now), "first_token_latency_ms": state.first_token_ms}
        changes.append(cut_off(state.open, **measured))
    for tool in state.tools:
        changes.append(end_open_tool(tool, NOT_ANSWERED, TOOL_INTERRUPTED, now))
    return replace(state, open=None, tools=(), texts=()), changes


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
        return replace(state, closed=True), [WaitForAnswers()]
    state, changes = _settle(state, now)
    status = "failed" if state.was_empty else "complete"
    state, closing = _close(state, now, status, for_queued=reason == "pending")
    return state, [*changes, *closing]


def _fail(state: TurnState, error: AgentError, now: Now) -> Reduced:
    state, changes = _settle(state, now)
    changes.append(insert_error(state, error, now))
    state, closing = _close(state, now, "failed")
    return state, [*changes, *closing]


def _stop(state: TurnState, now: Now) -> Reduced:
    state, changes = _settle(state, now)
    state, closing = _close(state, now, "interrupted", reason="stopped")
    return state, [*changes, closing[0], ReportCancelled(state.turn_id), *closing[1:]]


def _repair(state: TurnState, resume: bool, error: AgentError | None, now: Now) -> Reduced:
    """Repair the rows after the process has died. A resumed run executes calls that had not started (RUN-15).

    No call runs twice. If a text or the arguments of a call were cut off, no call of this response is executed, because
    the response is incomplete. No row gets a duration, because the time at which the process ended is unknown.
    """
    was_cut = state.open is not None or bool(state.writing)
    state, changes = drop_writing(state, now)
    changes.extend([cut_off(state.open)] if state.open is not None else [])
    kept = tuple(tool for tool in state.tools if resume and not was_cut and tool.began is None)
    changes.extend(_end_lost_tool(tool, now) for tool in state.tools if tool not in kept)
    if resume and was_cut and state.texts:
        changes.append(insert_note(state, RESUME_NOTE, now, RESUME_NOTE_SHOWN))
    begun = any(tool.began is not None for tool in state.tools)
    state = replace(state, open=None, tools=kept, texts=())
    if resume:
        return state, [*changes, *([ReportStatus("thinking")] if begun else [])]
    if error is None:
        state, closing = _close(state, now, "interrupted", reason="restarted")
        return state, [*changes, *closing]
    changes.append(insert_error(state, error, now))
    state, closing = _close(state, now, "failed")
    return state, [*changes, *closing]


def _end_lost_tool(tool: OpenTool, now: Now) -> Change:
    text = TOOL_NOT_BEGUN if tool.began is None and not tool.delegated else TOOL_LOST
    return end_open_tool(replace(tool, began=None), text, text, now)
