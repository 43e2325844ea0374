"""The limit of tool rounds in a turn that another process or an earlier attempt began."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

import pytest

from agents.events import AgentEvent, RoundLimitReached, TurnFinished
from agents.loop import Agent, limit_note, run
from agents.messages import Message, Text, ToolCall, ToolResult
from agents.providers.scripted import Reply, ScriptedProvider
from agents.tools import tool

HELLO = Message("user", (Text("hello"),))
MORE = Message("user", (Text("and now?"),))
NOTE = Message("system", (Text(limit_note(2)),))


@tool()
async def noop() -> None:
    """Do nothing."""


def called(number: int) -> Message:
    return Message("assistant", (ToolCall(f"c{number}", "noop", {}), ToolCall(f"d{number}", "noop", {})))


def returned(number: int, *names: str) -> Message:
    return Message("user", tuple(ToolResult(f"{name}{number}", "") for name in names or "cd"))


async def resumed(*history: Message, rounds: int = 2) -> tuple[list[AgentEvent], Sequence[str]]:
    """Return the events of a turn in which the model always calls tools, and each request's tool choice."""
    replies: list[Reply] = [[ToolCall(f"n{number}", "noop", {})] for number in range(9)]
    provider = ScriptedProvider(replies)
    agent = Agent("helper", "scripted", provider, tools=(noop,), max_rounds=rounds)
    async with aclosing(run(agent, history)) as events:
        yielded = [event async for event in events]
    return yielded, [request.tool_choice for request in provider.requests]


@pytest.mark.parametrize(
    ("history", "choices"),
    [
        ([HELLO], ["auto", "auto", "none"]),
        ([HELLO, called(1), returned(1)], ["auto", "none"]),
        ([HELLO, called(1)], ["auto", "none"]),
        ([HELLO, called(1), returned(1, "c")], ["auto", "none"]),
        ([HELLO, called(1), returned(1), called(2), returned(2)], ["none"]),
        ([HELLO, called(1), returned(1), called(2)], ["none"]),
        ([HELLO, called(1), returned(1), MORE], ["auto", "auto", "none"]),
    ],
    ids=["new", "after", "owed", "partly_owed", "all", "last_owed", "spoken_since"],
)
async def test_turn_that_goes_on_has_no_more_rounds_than_one_that_was_never_cut(
    history: list[Message], choices: list[str]
) -> None:
    """RUN-09, RUN-12: a crash or a retry does not reset the count of rounds, but a user's message does."""
    events, asked = await resumed(*history)
    assert asked == choices
    assert RoundLimitReached(2, limit_note(2)) in events
    assert events[-1] == TurnFinished("limit")


async def test_summary_that_is_asked_for_again_needs_no_second_note() -> None:
    """RUN-09, RUN-12: a note at the end of the history is not added again."""
    events, asked = await resumed(HELLO, called(1), returned(1), called(2), returned(2), NOTE)
    assert asked == ["none"]
    assert not any(isinstance(event, RoundLimitReached) for event in events)
    assert events[-1] == TurnFinished("limit")
