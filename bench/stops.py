"""The time from Stop until the viewer sees it, while other sessions stream."""

from __future__ import annotations

import asyncio

from bench.figures import both, print_table
from bench.stage import Stage

INTERVAL = 0.1


async def measure(stage: Stage, counts: list[int]) -> None:
    """Print the time from Stop to its frame, with one stop at a time, for each number of streams."""
    rows = [[str(count), *await _row(stage, count)] for count in counts]
    print_table(f"Stop, {stage.server.kind}, {stage.provider}", ["sessions", "p50 ms", "p99 ms"], rows)


async def _row(stage: Stage, count: int) -> list[str]:
    streams = await stage.watch(await stage.sessions(count))
    for stream in streams:
        stage.ask(stream, count=3000)
        await asyncio.sleep(0.02)
    await stage.streaming(streams)
    taken = []
    for stream in streams[: min(count, 100)]:
        stopped = stream.viewer.wait_for(b"cancelled")
        began = stream.viewer.send(type="cancel")
        taken.append(await stopped - began)
        await asyncio.sleep(INTERVAL)
    await stage.cancel(streams[100:])
    await stage.leave(streams)
    return both(taken)
