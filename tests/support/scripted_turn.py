"""The real agent loop with a scripted model, for tests of code that receives its events."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

from agents.errors import ToolError
from agents.events import AgentEvent, Usage
from agents.loop import Agent, run
from agents.messages import Message, Text, ToolCall
from agents.providers.scripted import Reply, ScriptedProvider
from agents.toolbox.widgets import WIDGET_TOOLS
from agents.tools import tool

USAGE = Usage(100, 20, 5, 7)
HELLO = (Message("user", (Text("hello"),)),)


@tool()
async def double(n: int) -> int:
    """Double a number."""
    return 2 * n


@tool()
async def broken() -> None:
    """Fail."""
    raise ToolError("It broke.")


@tool(approval=True)
async def risky() -> str:
    """Do something that people have to approve."""
    raise AssertionError("no one has approved it")


def calls(*numbers: int) -> list[ToolCall]:
    """Return calls of `double`, whose arguments have an unusual spacing that must be kept."""
    return [ToolCall(f"c{number}", "double", {"n": number}, f'{{ "n":{number}}}') for number in numbers]


async def _no_sleep(_: float) -> None:
    return None


async def _events(agent: Agent) -> list[AgentEvent]:
    async with aclosing(run(agent, HELLO, sleep=_no_sleep)) as events:
        return [event async for event in events]


def run_script(*replies: Reply, max_rounds: int = 25) -> tuple[list[AgentEvent], ScriptedProvider]:
    """Run the loop over a script. Return its events, and the provider with the requests that it has received."""
    provider = ScriptedProvider(replies)
    agent = Agent(
        "helper",
        "one",
        provider,
        tools=(double, broken, risky, *WIDGET_TOOLS),
        max_rounds=max_rounds,
        context_window=1000,
    )
    return asyncio.run(_events(agent)), provider


def events_of(replies: Sequence[Reply], max_rounds: int = 25) -> list[AgentEvent]:
    return run_script(*replies, max_rounds=max_rounds)[0]
