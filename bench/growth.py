"""The cost of a token at the start and end of a long answer, and in short and long sessions."""

from __future__ import annotations

import asyncio

from bench.figures import print_table
from bench.stage import Spent, Stage, Stream, spend

LONG_ANSWER = 100_000
STREAMS = 20


async def measure(stage: Stage) -> None:
    """Print the cost of a token at the start and the end of a long answer, and in a short and a long session."""
    start, end = await _long_answer(stage)
    rows = [["start of a 100 KB answer", *_costs(start)], ["its end", *_costs(end)]]
    rows += [[f"a session of {size:,} messages", *_costs(await _session(stage, size))] for size in (10, 10_000)]
    print_table(
        f"Cost per token, {STREAMS} sessions at 50 tokens/s, {stage.server.kind}, {stage.face}",
        ["where", "CPU s / 1,000 tokens", "frame KB/s each"],
        rows,
    )


def _costs(measured: tuple[Spent, float]) -> list[str]:
    spent, rate = measured
    return [f"{spent.per_thousand:.4f}", f"{rate:.1f}"]


async def _long_answer(stage: Stage) -> tuple[tuple[Spent, float], tuple[Spent, float]]:
    streams = await stage.watch(await stage.sessions(STREAMS))
    tokens = 50 * 45
    for stream in streams:
        stage.ask(stream, count=tokens, size=LONG_ANSWER // tokens)
    await stage.streaming(streams)
    start = await _spend(stage, streams)
    await asyncio.sleep(45 - 2 * 12)
    end = await _spend(stage, streams)
    await stage.cancel(streams)
    await stage.leave(streams)
    return start, end


async def _session(stage: Stage, size: int) -> tuple[Spent, float]:
    count = STREAMS if size < 1000 else STREAMS // 4
    streams = await stage.watch(await stage.sessions(count, size), since=size)
    others = await stage.watch(await stage.sessions(STREAMS - count, 10), since=10) if count < STREAMS else []
    for stream in [*streams, *others]:
        stage.ask(stream, count=3000)
    await stage.streaming(streams)
    await asyncio.sleep(3)
    measured = await _spend(stage, streams)
    await stage.cancel([*streams, *others])
    await stage.leave([*streams, *others])
    return measured


async def _spend(stage: Stage, streams: list[Stream]) -> tuple[Spent, float]:
    size = sum(stream.viewer.bytes for stream in streams)
    spent = await spend(stage, 10)
    return spent, (sum(stream.viewer.bytes for stream in streams) - size) / 1000 / spent.seconds / len(streams)
