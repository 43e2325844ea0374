"""The tool round: which calls run together, in which order, and how their tasks end (RUN-11)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence

from agents.events import ToolReturned, ToolStarted
from agents.messages import ToolCall, ToolResult
from agents.tools import NO_CONTEXT, Tool, ToolContext, call_tool

logger = logging.getLogger(__name__)

# How long a cancelled tool may clean up before it is left behind: Stop is within 200 ms (RUN-07).
CLEAN_UP_SECONDS = 0.1


async def run_tools(
    tools: Mapping[str, Tool], calls: Sequence[ToolCall], context: ToolContext = NO_CONTEXT
) -> AsyncGenerator[ToolStarted | ToolReturned, None]:
    """Run the calls: neighbours that are safe to run together do, the others wait for those before them.

    Yields the ToolStarted of all that start together before any of them runs, ToolReturned as each one ends.
    Closing the generator cancels what still runs.
    """
    for batch in _batches(tools, calls):
        for call in batch:
            yield ToolStarted(call)
        tasks = [asyncio.create_task(call_tool(tools, call, context), name=f"tool {call.name}") for call in batch]
        finished: asyncio.Queue[asyncio.Task[ToolResult]] = asyncio.Queue()
        for task in tasks:
            task.add_done_callback(finished.put_nowait)
        try:
            for _ in tasks:
                yield ToolReturned((await finished.get()).result())
        finally:
            await _cancel(tasks)


def _batches(tools: Mapping[str, Tool], calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
    batches: list[list[ToolCall]] = []
    joinable = False
    for call in calls:
        parallel = call.name not in tools or tools[call.name].parallel
        if parallel and joinable:
            batches[-1].append(call)
        else:
            batches.append([call])
        joinable = parallel
    return batches


async def _cancel(tasks: Collection[asyncio.Task[ToolResult]]) -> None:
    running = [task for task in tasks if task.cancel()]
    if not running:
        return
    _, stubborn = await asyncio.wait(running, timeout=CLEAN_UP_SECONDS)
    for task in stubborn:
        logger.warning("A cancelled tool does not end and is left behind: %s", task.get_name())
