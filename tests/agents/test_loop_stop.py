"""Stopping a turn at every point of every round, by cancelling it and by closing it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import pytest

from agents.errors import Overloaded
from agents.events import AgentEvent, PartDone, ToolReturned, ToolStarted, TurnFinished
from agents.loop import Agent, run
from agents.messages import Message, Text, ToolCall
from agents.providers.scripted import Gate, Pause, Reply, ScriptedProvider
from agents.tool_round import CLEAN_UP_SECONDS
from agents.tools import Tool, tool

HELLO = [Message("user", (Text("hello"),))]
BUSY = Overloaded("busy", retry_after=1)
running: set[int] = set()


@pytest.fixture(autouse=True)
def nothing_runs() -> None:
    running.clear()


@tool()
async def slow(n: int) -> int:
    """Take n turns of the event loop."""
    running.add(n)
    try:
        for _ in range(n):
            await asyncio.sleep(0)
    finally:
        running.discard(n)
    return n


@tool(parallel=False)
async def lonely(n: int) -> int:
    """Take n turns of the event loop, alone."""
    result: int = await slow.function(n)
    return result


def call(number: int, name: str = "slow") -> ToolCall:
    return ToolCall(f"c{number}", name, {"n": number})


def script() -> list[Reply]:
    """Return a turn with a retry, a pause in mid-text, two tool rounds and an answer."""
    return [
        [BUSY],
        ["Let ", Pause(0), "me see.", call(1), call(3), call(2, "lonely")],
        [Pause(0), call(4)],
        ["Done", Pause(0), "."],
    ]


async def whole_turn(provider: ScriptedProvider) -> AsyncGenerator[AgentEvent, None]:
    agent = Agent("helper", "scripted", provider, tools=(slow, lonely))

    async def refresh() -> tuple[Agent, Sequence[Message]]:
        await asyncio.sleep(0)
        return agent, HELLO

    async def pending() -> bool:
        await asyncio.sleep(0)
        return False

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(0)

    async with aclosing(run(agent, HELLO, pending, refresh=refresh, sleep=sleep)) as events:
        async for event in events:
            yield event


async def stopped_after(ticks: int) -> tuple[bool, list[AgentEvent]]:
    """Cancel the consumer after `ticks` turns of the event loop; return whether it was running, and its events."""
    provider = ScriptedProvider(script())
    seen: list[AgentEvent] = []

    async def consume() -> None:
        async with aclosing(whole_turn(provider)) as events:
            async for event in events:
                seen.append(event)

    task = asyncio.create_task(consume())
    for _ in range(ticks):
        await asyncio.sleep(0)
    hit = task.cancel()
    await asyncio.wait([task])
    assert task.cancelled() is hit
    nothing_is_left(provider)
    return hit, seen


def nothing_is_left(provider: ScriptedProvider) -> None:
    assert provider.streaming == 0
    assert running == set()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_turn_is_cancelled_at_every_await_and_leaves_nothing() -> None:
    """RUN-07: a turn can be cancelled before the first token, in mid-text, during a tool and between rounds, and leaves
    nothing."""
    history_sizes: list[int] = []
    for ticks in range(1000):
        hit, seen = await stopped_after(ticks)
        if not hit:
            break
        history_sizes.append(len(seen))
    assert seen[-1] == TurnFinished("done")
    assert len(history_sizes) > 20
    assert history_sizes == sorted(history_sizes)
    assert len(set(history_sizes)) > 8


async def test_turn_is_closed_after_every_event_and_leaves_nothing() -> None:
    """RUN-07: the consumer can close the turn after any event."""
    provider = ScriptedProvider(script())
    events = [event async for event in whole_turn(provider)]
    assert events[-1] == TurnFinished("done")
    for count in range(len(events)):
        provider = ScriptedProvider(script())
        turn = whole_turn(provider)
        seen = [await anext(turn) for _ in range(count + 1)]
        assert seen == events[: count + 1]
        await turn.aclose()
        nothing_is_left(provider)


async def test_calls_started_before_a_stop_are_known() -> None:
    """RUN-08: at any moment, the reported events tell which calls are open, and none has two results."""
    for ticks in range(100):
        hit, seen = await stopped_after(ticks)
        said = [event.part.id for event in seen if isinstance(event, PartDone) and isinstance(event.part, ToolCall)]
        started = [event.call.id for event in seen if isinstance(event, ToolStarted)]
        returned = [event.result.call_id for event in seen if isinstance(event, ToolReturned)]
        assert len(set(returned)) == len(returned)
        assert set(returned) <= set(started) <= set(said)
        if not hit:
            break
    assert not hit


async def test_stop_before_the_first_token_closes_the_stream() -> None:
    """A stop before the first token closes the connection to the model (RUN-07)."""
    gate = Gate()
    provider = ScriptedProvider([[gate, "never"]])
    task = asyncio.create_task(consume(Agent("helper", "scripted", provider)))
    await gate.reached()
    assert provider.streaming == 1
    task.cancel()
    await asyncio.wait([task])
    nothing_is_left(provider)


async def test_tool_that_ignores_its_cancellation_does_not_hold_up_a_stop(caplog: pytest.LogCaptureFixture) -> None:
    """RUN-07: the tool is abandoned after a moment, and the log names it."""
    started, released = asyncio.Event(), asyncio.Event()

    @tool()
    async def stubborn() -> str:
        """Do not listen."""
        started.set()
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    await stop_in(stubborn, started)
    assert "stubborn" in caplog.text
    assert CLEAN_UP_SECONDS < 0.2
    released.set()
    while len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110 - the task that was left behind ends
        await asyncio.sleep(0)


async def test_tool_may_clean_up_when_it_is_stopped() -> None:
    started, cleaned = asyncio.Event(), []

    @tool()
    async def tidy() -> None:
        """Clean up."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    await stop_in(tidy, started)
    assert cleaned == [True]


async def stop_in(tool: Tool, started: asyncio.Event) -> None:
    """Run a turn that calls the tool, and cancel it when the tool has started."""
    provider = ScriptedProvider([[ToolCall("c", tool.name, {})], ["ok"]])
    turn = asyncio.create_task(consume(Agent("helper", "scripted", provider, tools=(tool,))))
    await started.wait()
    turn.cancel()
    await asyncio.wait([turn])
    assert turn.cancelled()


async def consume(agent: Agent) -> None:
    async with aclosing(run(agent, HELLO)) as events:
        async for _ in events:
            pass
