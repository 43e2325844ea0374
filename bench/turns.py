"""The cost of a whole turn for the server, from Send until it is idle, in short turns one after the other."""

from __future__ import annotations

import asyncio

from bench.figures import print_table
from bench.stage import Stage

TOKENS = 5
PER_SECOND = 20
ROUNDS = 3
WARM_UP = 20


async def measure(stage: Stage, count: int) -> None:
    """Print the CPU milliseconds of a turn of TOKENS tokens with one viewer, as the mean of `count` sessions."""
    streams = await stage.watch(await stage.sessions(count))
    for stream in streams[:WARM_UP]:
        stage.ask(stream, count=TOKENS)
        await stage.streaming([stream])
    await stage.quiet()
    rows = []
    for number in range(ROUNDS):
        began = stage.server.cpu()
        for stream in streams:
            stage.ask(stream, count=TOKENS)
            await asyncio.sleep(1 / PER_SECOND)
        await stage.streaming(streams)
        await stage.quiet()
        rows.append([str(number + 1), str(count), f"{(stage.server.cpu() - began) * 1000 / count:.1f}"])
    print_table(
        f"Whole turns of {TOKENS} tokens, {stage.server.kind}, {stage.face}", ["round", "turns", "CPU ms a turn"], rows
    )
    await stage.leave(streams)
