"""The server's memory for each idle socket."""

from __future__ import annotations

import asyncio

from bench.figures import print_table
from bench.stage import Stage

WARM_UP = 50


async def measure(stage: Stage, count: int) -> None:
    """Print the memory per idle socket, with a session for each socket and with one session for all."""
    await stage.watch(await stage.sessions(WARM_UP))
    apart = await _each(stage, await stage.sessions(count))
    together = await _each(stage, await stage.sessions(1) * count)
    head = ["idle sockets", "on", "KiB each"]
    rows = [[str(count), "a session each", f"{apart:.1f}"], [str(count), "one session", f"{together:.1f}"]]
    print_table(f"Memory, {stage.server.kind}, {stage.face}", head, rows)


async def _each(stage: Stage, session_ids: list[str]) -> float:
    before = stage.server.memory()
    streams = await stage.watch(session_ids)
    await asyncio.sleep(4)  # by then, all viewers have been reported
    after = stage.server.memory()
    if any(stream.viewer.closed for stream in streams):
        raise RuntimeError("the server has closed sockets")
    return (after - before) / 1024 / len(session_ids)
