"""The invariants of a session's rows, as pure functions that yield violations.

`manage.py verify` uses them to check a whole database, and tests to check each session at their end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agents.messages import Message
from chat.models import UNFINISHED, ChatMessage, MessageStatus, MessageType, RunState, SessionRun


def problems_of_run(run: SessionRun) -> Iterator[str]:
    """Yield contradictions in the row of a run, by which it would never be claimed, or be claimed without a request."""
    if run.state == RunState.IDLE and run.owner_id is None and run.turn_id:
        yield "its run is idle with an open turn"
    if run.done > run.wanted:
        yield "more runs are done than were requested"
    is_open = run.state in (RunState.RUNNING, RunState.CANCELLING)
    if is_open and run.owner_id is None and run.done == run.wanted:
        yield f"its turn is {run.state}, but no worker has it, and no run is requested: it would never end"


def is_at_rest(run: SessionRun) -> bool:
    """Return whether nothing runs or waits to run in a session."""
    return (run.state, run.turn_id, run.owner_id, run.done) == (RunState.IDLE, "", None, run.wanted)


def problems_of_order(rows: Sequence[ChatMessage]) -> Iterator[str]:
    """Yield a problem if the sequence of a conversation's rows has gaps (MSG-03)."""
    if [row.sequence for row in rows] != list(range(1, len(rows) + 1)):
        yield "the sequence of its messages has gaps"


def problems_at_rest(rows: Iterable[ChatMessage]) -> Iterator[str]:
    """Yield problems in the rows of the conversation and the queue of a session at rest (MSG-07, RUN-06).

    No row may be unfinished, and only held messages may be queued. Each turn_start needs one turn_done, with the rows
    of the turn between them.
    """
    open_turn = ""
    for row in rows:
        if row.status in UNFINISHED:
            yield f"{row.type} {row.pk} is {row.status}, but no turn runs"
        if row.status == MessageStatus.QUEUED:
            if not row.held:
                yield f"message {row.pk} is queued, but no turn runs"
            continue
        if row.type == MessageType.TURN_START:
            if open_turn:
                yield f"turn {open_turn} has no end"
            open_turn = row.turn_id
        if row.turn_id != open_turn:
            yield f"{row.type} {row.pk} is outside of its turn"
        if row.type == MessageType.TURN_DONE:
            open_turn = ""
    if open_turn:
        yield f"turn {open_turn} has no end"


def problems_of_calls(messages: Sequence[Message], *, may_wait: bool = False) -> Iterator[str]:
    """Yield problems that model vendors refuse: results that do not match the calls before them (CTX-03).

    With `may_wait`, calls of the last response may lack a result.
    """
    ids = [call.id for message in messages for call in message.tool_calls]
    if len(ids) != len(set(ids)):
        yield "two tool calls have the same id"
    owed: list[str] = []
    called: list[str] = []
    for message in messages:
        if not message.parts:
            yield "a message of the context is empty"
        if owed:
            yield "a tool call has no result before the next message"
        answered = [result.call_id for result in message.tool_results]
        if answered != [call_id for call_id in called if call_id in answered]:
            yield "a tool result answers no call of the response before it"
        owed = [call_id for call_id in called if call_id not in answered] if answered else []
        if called and not answered:
            yield "tool calls have no results right after them"
        called = [call.id for call in message.tool_calls]
    if (owed or called) and not may_wait:
        yield "the last tool calls have no results"
