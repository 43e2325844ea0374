"""Tool rounds: which calls run in parallel, which wait, and the order of their events."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from agents import tool_round
from agents.events import ToolOutput, ToolReturned, ToolStarted
from agents.messages import ToolCall, ToolResult
from agents.tool_round import MAX_OUTPUT_LENGTH, Reported, run_tools
from agents.tools import NO_CONTEXT, Tool, ToolContext, tool


def tools(*given: Tool) -> dict[str, Tool]:
    return {one.name: one for one in given}


async def test_safe_tools_run_together_and_are_reported_as_they_finish() -> None:
    """RUN-11: the tools wait for each other, so running them one after another would never end."""
    turns = {"a": asyncio.Event(), "b": asyncio.Event()}

    @tool()
    async def wait(mine: str, give: str) -> str:
        """Wait for my turn, then give it on."""
        if mine:
            await turns[mine].wait()
        if give:
            turns[give].set()
        return mine

    calls = [
        ToolCall("1", "wait", {"mine": "a", "give": "b"}),
        ToolCall("2", "wait", {"mine": "b", "give": ""}),
        ToolCall("3", "wait", {"mine": "", "give": "a"}),
    ]
    async with aclosing(run_tools(tools(wait), calls)) as events:
        yielded = [event async for event in events]
    assert yielded == [
        *map(ToolStarted, calls),
        ToolReturned(ToolResult("3", "")),
        ToolReturned(ToolResult("1", "a")),
        ToolReturned(ToolResult("2", "b")),
    ]


async def test_tools_that_start_together_run_only_after_all_starts_are_reported() -> None:
    """RUN-15: the consumer stores "running" before a tool has an effect, so that none runs twice unnoticed."""
    ran: list[int] = []

    @tool()
    async def note(n: int) -> None:
        """Note it."""
        ran.append(n)

    events = run_tools(tools(note), [ToolCall(str(n), "note", {"n": n}) for n in (1, 2)])
    for _ in range(2):
        assert isinstance(await anext(events), ToolStarted)
        await asyncio.sleep(0)
        assert ran == []
    assert isinstance(await anext(events), ToolReturned)
    assert ran == [1, 2]
    await events.aclose()


async def test_tool_that_must_be_alone_waits_and_is_waited_for() -> None:
    """RUN-11: the groups are [safe, safe], [alone], [alone] and [safe], in the order of the calls."""
    log: list[str] = []

    async def noted(name: str) -> None:
        log.append(f"+{name}")
        await asyncio.sleep(0)
        log.append(f"-{name}")

    @tool()
    async def safe(name: str) -> None:
        """Run beside others."""
        await noted(name)

    @tool(parallel=False)
    async def alone(name: str) -> None:
        """Run alone."""
        await noted(name)

    names = {"a": "safe", "b": "safe", "C": "alone", "D": "alone", "e": "safe"}
    calls = [ToolCall(name, kind, {"name": name}) for name, kind in names.items()]
    async with aclosing(run_tools(tools(safe, alone), calls)) as events:
        yielded = [(type(event).__name__, _id(event)) async for event in events]
    assert log == ["+a", "+b", "-a", "-b", "+C", "-C", "+D", "-D", "+e", "-e"]
    assert [name for kind, name in yielded if kind == "ToolStarted"] == list("abCDe")
    assert yielded.index(("ToolStarted", "C")) > yielded.index(("ToolReturned", "b"))


def _id(event: ToolStarted | Reported | ToolReturned) -> str:
    assert isinstance(event, ToolStarted | ToolReturned)
    return event.call.id if isinstance(event, ToolStarted) else event.result.call_id


async def test_failing_tool_does_not_disturb_its_neighbors() -> None:
    """A failing tool does not affect the other tools of its round (RUN-11)."""

    @tool()
    async def divide(n: int) -> float:
        """Divide one by it."""
        return 1 / n

    calls = [ToolCall("1", "divide", {"n": 0}), ToolCall("2", "unknown", {}), ToolCall("3", "divide", {"n": 2})]
    async with aclosing(run_tools(tools(divide), calls)) as events:
        results = {event.result.call_id: event.result async for event in events if isinstance(event, ToolReturned)}
    assert results["1"] == ToolResult("1", "ZeroDivisionError: division by zero", is_error=True)
    assert results["2"].is_error
    assert results["3"] == ToolResult("3", "0.5")


async def test_blocking_tools_run_together_too() -> None:
    """RUN-11: plain functions run in threads, in which these two meet."""
    meeting = threading.Barrier(2, timeout=20)

    @tool()
    def meet() -> str:
        """Wait for the other one."""
        meeting.wait()
        return "met"

    calls = [ToolCall("1", "meet", {}), ToolCall("2", "meet", {})]
    async with aclosing(run_tools(tools(meet), calls)) as events:
        results = [event.result.content async for event in events if isinstance(event, ToolReturned)]
    assert results == ["met", "met"]


async def test_consumer_that_takes_its_time_loses_no_result() -> None:
    @tool()
    async def quick() -> str:
        """Answer."""
        return "ok"

    events: AsyncGenerator[ToolStarted | Reported | ToolReturned, None]
    async with aclosing(run_tools(tools(quick), [ToolCall(str(n), "quick", {}) for n in range(3)])) as events:
        yielded = []
        async for event in events:
            for _ in range(10):
                await asyncio.sleep(0)
            yielded.append(_id(event))
    assert yielded == ["0", "1", "2"] * 2


async def test_output_is_reported_while_a_tool_runs() -> None:
    """The first output is reported immediately, later output in few events, and none after the result."""
    more, end = asyncio.Event(), asyncio.Event()

    @tool()
    async def say(context: ToolContext = NO_CONTEXT) -> str:
        """Say it."""
        context.report("a")
        await more.wait()
        for _ in range(1_000):
            context.report("b")
        await end.wait()
        context.report("never shown")
        return "done"

    async with aclosing(run_tools(tools(say), [ToolCall("1", "say", {})])) as events:
        assert await anext(events) == ToolStarted(ToolCall("1", "say", {}))
        assert await anext(events) == ToolOutput("1", "a")
        more.set()
        assert await anext(events) == ToolOutput("1", "a" + 1_000 * "b")
        end.set()
        assert [event async for event in events] == [ToolReturned(ToolResult("1", "done"))]


async def test_output_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event has the end of the output, so that its size is bounded."""
    monkeypatch.setattr(tool_round, "OUTPUT_INTERVAL", 0.0)

    @tool()
    async def flood(context: ToolContext = NO_CONTEXT) -> str:
        """Flood."""
        for number in range(100):
            context.report(f"{number} " * 10_000)
            await asyncio.sleep(0)
        return "done"

    async with aclosing(run_tools(tools(flood), [ToolCall("1", "flood", {})])) as events:
        outputs = [event.text async for event in events if isinstance(event, ToolOutput)]
    assert {len(text) for text in outputs} == {MAX_OUTPUT_LENGTH}
    assert len(outputs) > 1
