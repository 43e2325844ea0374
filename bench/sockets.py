"""Sockets on which nothing happens: what each of them holds of the server's memory."""

from __future__ import annotations

import asyncio

from bench.figures import print_table
from bench.stage import Stage

WARM_UP = 50


async def measure(stage: Stage, count: int) -> None:
    """Print the memory per idle socket: each on a session of its own, and all on one."""
    await stage.watch(await stage.sessions(WARM_UP))
    apart = await _each(stage, await stage.sessions(count))
    together = await _each(stage, await stage.sessions(1) * count)
    head = ["idle sockets", "on", "KiB each"]
    rows = [[str(count), "a session each", f"{apart:.1f}"], [str(count), "one session", f"{together:.1f}"]]
    print_table(f"Memory, {stage.server.kind}, {stage.face}", head, rows)


async def _each(stage: Stage, session_ids: list[str]) -> float:
    before = stage.server.memory()
    streams = await stage.watch(session_ids)
    await asyncio.sleep(4)  # the beacon has told all of them by then
    after = stage.server.memory()
    if any(stream.viewer.closed for stream in streams):
        raise RuntimeError("the server has closed sockets")
    return (after - before) / 1024 / len(session_ids)
