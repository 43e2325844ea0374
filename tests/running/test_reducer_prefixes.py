"""Every prefix of every kind of turn, ended in every way: all output up to the end is committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agents.errors import AgentError, AuthenticationFailed, ConnectionLost, RateLimited
from agents.events import AgentEvent, PartDone, ReasoningDelta, ResponseDone, TextDelta, TurnFailed, TurnFinished
from agents.messages import ToolCall
from agents.providers.scripted import HangUp, Reply, Sign, Step, Stop
from chat.projections.context import NOT_ANSWERED, TOOL_INTERRUPTED, TOOL_LOST, TOOL_NOT_BEGUN
from chat.runs.turn_state import ProcessLost, Stopped, TurnEvent
from tests.support.ledger import OPEN_CALLS, UNFINISHED, Turn
from tests.support.scripted_turn import USAGE, calls, events_of

SIGNED: list[Step] = [ReasoningDelta("Let me "), ReasoningDelta("see."), Sign({"signature": "abc="})]
TURNS: dict[str, tuple[Sequence[Reply], int]] = {
    "text": ([["Hel", "lo", USAGE]], 25),
    "reasoning and text": ([[ReasoningDelta("hm"), "Hel", "lo"]], 25),
    "signed reasoning": ([[*SIGNED, "Hello"]], 25),
    "hidden reasoning": ([[Sign({"redacted": "xyz="}), "Hello", USAGE]], 25),
    "text between calls": ([["One ", *calls(1), "two ", *calls(2), ReasoningDelta("hm"), USAGE], ["Done."]], 25),
    "text around reasoning": ([["One ", ReasoningDelta("hm"), "two", ReasoningDelta("so"), USAGE]], 25),
    "tools": ([["Look: ", *calls(1, 2, 3), USAGE], [*SIGNED, *calls(4), USAGE], ["So ", "be it.", USAGE]], 25),
    "tools without a word": ([calls(1, 2), ["Done."]], 25),
    "a tool that fails": ([[ToolCall("c1", "broken", {}), *calls(2)], ["Oh."]], 25),
    "an unknown tool": ([[ToolCall("c1", "unknown", {"x": 1})], ["Oh."]], 25),
    "a question": ([["Sure? ", ToolCall("c1", "confirmation", {"question": "Sure?"}), USAGE]], 25),
    "a question and other calls": ([[*calls(1), ToolCall("c9", "risky", {}), *calls(2), USAGE]], 25),
    "a question that is none": ([[ToolCall("c1", "confirmation", {}), USAGE], ["Oh.", USAGE]], 25),
    "nothing": ([[USAGE]], 25),
    "reasoning alone": ([[*SIGNED, USAGE]], 25),
    "wrong key": ([[AuthenticationFailed("The key is wrong.")]], 25),
    "failure in the text": ([["Hel", "lo", ConnectionLost("The line is dead.")]], 25),
    "failure in the reasoning": ([[ReasoningDelta("hm"), ConnectionLost("The line is dead.")]], 25),
    "failure after calls": ([["Look", *calls(1, 2), HangUp()]], 25),
    "retry": ([[RateLimited("Slow.")], [RateLimited("Slow.")], ["Hello", USAGE]], 25),
    "cut at the limit": ([["Hel", *calls(1), Stop("max_tokens"), USAGE]], 25),
    "refusal": ([[Stop("refusal"), USAGE]], 25),
    "pause": ([["One. ", Stop("pause"), USAGE], ["Two.", USAGE]], 25),
    "round limit": ([["One", *calls(1)], ["Two", *calls(2)], ["So far.", USAGE]], 2),
    "round limit ignored": ([calls(1), ["More!", *calls(2), USAGE]], 1),
}
ENDS: dict[str, TurnEvent] = {
    "stop": Stopped(),
    "lost, close": ProcessLost(resume=False),
    "lost, resume": ProcessLost(resume=True),
    "failure": TurnFailed(AgentError("Something broke.")),
}


@pytest.fixture(scope="module")
def turns() -> dict[str, list[AgentEvent]]:
    return {name: events_of(replies, rounds) for name, (replies, rounds) in TURNS.items()}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", TURNS)
def test_every_prefix_of_a_turn_can_end(turns: dict[str, list[AgentEvent]], name: str, end: str) -> None:
    """RUN-08, RUN-15, MSG-05, MSG-06, MSG-07: whatever happened before the end, no row stays unfinished, and nothing is
    lost."""
    for length in range(len(turns[name]) + 1):
        events = turns[name][:length]
        turn = Turn().apply(*events, ENDS[end])
        ended = length == len(turns[name]) and events[-1] != TurnFinished("waiting")
        goes_on = end == "lost, resume" and not ended
        assert turn.ledger.closed == (0 if goes_on else 1)
        check_ends(turn, seconds=length + (0 if ended else 1), may_wait=goes_on)
        check_metrics(turn, events)
        check_texts(turn, events, timed=ended or not isinstance(ENDS[end], ProcessLost))


def check_ends(turn: Turn, *, seconds: int, may_wait: bool) -> None:
    rows = turn.ledger.rows.values()
    assert [row for row in rows if row["status"] in UNFINISHED and not (may_wait and row["status"] in OPEN_CALLS)] == []
    assert len(turn.ledger.of(type="text", status="interrupted")) <= 1
    for tool in turn.ledger.of(type="tool_group"):
        is_open = tool["status"] in OPEN_CALLS
        assert is_open or (tool["result"] and isinstance(tool["is_error"], bool))
        assert ("ended_at" in tool) != is_open
    done = turn.ledger.of(type="turn_done")
    assert [row["duration_seconds"] for row in done] == [seconds] * turn.ledger.closed


def check_metrics(turn: Turn, events: Sequence[AgentEvent]) -> None:
    """Check that each finished response has one response_done, and metrics on its last row (RUN-02, MSG-06)."""
    responses: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for message_id, row in turn.ledger.rows.items():
        if row.get("response_id") and row["type"] != "error":
            responses.setdefault(row["response_id"], []).append((message_id, row))
    heralds = [message_id for message_id, name in turn.ledger.names if name == "response_done"]
    for rows in responses.values():
        done = sum(message_id in heralds for message_id, _ in rows)
        assert done == sum("total_tokens" in row for _, row in rows) <= 1
        assert done == ("total_tokens" in rows[-1][1])
    assert len(turn.ledger.usage) == sum(isinstance(event, ResponseDone) for event in events)
    silent = len(turn.ledger.usage) - len(heralds)
    assert silent == (1 if turn.ledger.usage and not responses else 0)


def check_texts(turn: Turn, events: Sequence[AgentEvent], *, timed: bool) -> None:
    """Check that the rows have all words in order, and that texts written by a living process have a duration
    (MSG-05)."""
    for kind, event_type in (("text", TextDelta), ("reasoning", ReasoningDelta)):
        said = "".join(event.text for event in events if isinstance(event, event_type))
        rows = turn.ledger.of(type=kind, role="assistant")
        assert "".join(row["text"] for row in rows) == said
        assert not timed or all("duration_ms" in row for row in rows if row["text"])


@pytest.mark.parametrize("name", TURNS)
def test_whole_turn_closes_itself(turns: dict[str, list[AgentEvent]], name: str) -> None:
    """RUN-01, RUN-10, UI-12: the loop's last event closes or pauses the turn, and later events change nothing."""
    turn = Turn().apply(*turns[name])
    if turns[name][-1] == TurnFinished("waiting"):
        assert (turn.ledger.closed, turn.ledger.waiting) == (0, 1)
        return
    assert turn.ledger.closed == 1
    rows = [dict(row) for row in turn.ledger.rows.values()]
    turn.apply(Stopped(), ProcessLost(resume=True), TextDelta("late"), PartDone(calls(9)[0]))
    assert list(turn.ledger.rows.values()) == rows


@pytest.mark.parametrize("name", TURNS)
def test_lost_turn_runs_no_tool_twice(turns: dict[str, list[AgentEvent]], name: str) -> None:
    """RUN-15: after a resume, only calls that had not begun are pending. Calls that had begun are reported as lost."""
    for length in range(len(turns[name])):
        turn = Turn().apply(*turns[name][:length])
        before = {message_id: dict(row) for message_id, row in turn.ledger.rows.items()}
        turn.apply(ProcessLost(resume=True))
        for message_id, row in before.items():
            now = turn.ledger.rows[message_id]
            if row["status"] == "running":
                assert (now["status"], now["result"], now["is_error"]) == ("interrupted", TOOL_LOST, True)
            elif row["status"] == "streaming":
                assert now["status"] == "interrupted"
            elif row["status"] == "pending" and now["status"] != "pending":
                assert (now["status"], now["result"], now["is_error"]) == ("interrupted", TOOL_NOT_BEGUN, True)
            else:
                assert now == row


@pytest.mark.parametrize("name", TURNS)
def test_model_learns_which_tools_a_stop_interrupted(turns: dict[str, list[AgentEvent]], name: str) -> None:
    """RUN-08: finished results stay unchanged. The others get the text for interrupted calls, with is_error."""
    for length in range(len(turns[name])):
        turn = Turn().apply(*turns[name][:length])
        before = {message_id: dict(row) for message_id, row in turn.ledger.rows.items()}
        turn.apply(Stopped())
        for message_id, row in before.items():
            now = turn.ledger.rows[message_id]
            if row["status"] in ("running", "pending", "waiting"):
                result = NOT_ANSWERED if row["status"] == "waiting" else TOOL_INTERRUPTED
                assert (now["status"], now["result"], now["is_error"]) == ("interrupted", result, True)
            elif row["type"] == "tool_group":
                assert now == row
