"""The time from the upstream's token to the client's frame, and the cost of a token, when many sessions stream."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from bench.figures import both, percentile, print_table
from bench.stage import Spent, Stage, Stream, spend

WARM_UP = 3.0
STARTS_PER_SECOND = 60
PATIENCE = 0.25
HEAD = [
    "sessions",
    "p50 ms",
    "p99 ms",
    "CPU %",
    "CPU s / 1,000 tokens",
    "frames/s",
    "B / token",
    "MiB",
    "upstream late p99 ms",
]


@dataclass
class Run:
    """The measurement of one number of sessions."""

    count: int
    latencies: list[float]
    spent: Spent
    frames: int
    bytes: int
    memory: int
    late: float

    @property
    def holds(self) -> bool:
        return percentile(self.latencies, 0.99) < PATIENCE

    def row(self) -> list[str]:
        seconds = self.spent.seconds
        return [
            str(self.count),
            *both(self.latencies),
            f"{self.spent.share * 100:.0f}",
            f"{self.spent.per_thousand:.4f}",
            f"{self.frames / seconds:,.0f}",
            f"{self.bytes / self.spent.tokens:,.1f}",
            f"{self.memory / 2**20:.0f}",
            f"{self.late * 1000:.1f}",
        ]


async def measure(stage: Stage, counts: Sequence[int], seconds: float) -> None:
    """Print the measurements for each number of sessions."""
    runs = [await stream(stage, count, seconds) for count in counts]
    print_table(f"Streaming, 50 tokens/s each, {_what(stage)}, {seconds:.0f} s", HEAD, [run.row() for run in runs])


async def search(stage: Stage, start: int, step: int, seconds: float) -> None:
    """Raise the number of sessions until p99 reaches 250 ms."""
    runs: list[Run] = []
    while not runs or runs[-1].holds:
        runs.append(await stream(stage, start + step * len(runs), seconds))
    held = [run.count for run in runs if run.holds]
    print_table(
        f"Most sessions with p99 < 250 ms, {_what(stage)}: {max(held, default=0)}", HEAD, [r.row() for r in runs]
    )


async def stream(stage: Stage, count: int, seconds: float) -> Run:
    """Start `count` sessions one after the other, wait for WARM_UP, measure for `seconds`, and stop them."""
    streams = await stage.watch(await stage.sessions(count))
    tokens = int((seconds + WARM_UP + count / STARTS_PER_SECOND + 20) * 50)
    for each in streams:
        stage.ask(each, count=tokens)
        await asyncio.sleep(1 / STARTS_PER_SECOND)
    await stage.streaming(streams)
    await asyncio.sleep(WARM_UP)
    stage.upstream.lateness.clear()
    frames, size = _traffic(streams)
    begun = [len(each.viewer.seen) for each in streams]
    spent = await spend(stage, seconds)
    ended = [len(each.viewer.seen) for each in streams]
    late = percentile(list(stage.upstream.lateness), 0.99)
    latencies = [
        latency
        for each, first, last in zip(streams, begun, ended, strict=True)
        for latency in _latencies(stage, each, first, last)
    ]
    frames_now, size_now = _traffic(streams)
    memory = stage.server.memory()
    await stage.cancel(streams)
    await stage.leave(streams)
    return Run(count, latencies, spent, frames_now - frames, size_now - size, memory, late)


def _latencies(stage: Stage, stream: Stream, first: int, last: int) -> list[float]:
    sent = stage.sent(stream)
    assert sent is not None
    return [seen - left for seen, left in zip(stream.viewer.seen[first:last], sent.times[first:last], strict=True)]


def _traffic(streams: Sequence[Stream]) -> tuple[int, int]:
    return sum(each.viewer.frames for each in streams), sum(each.viewer.bytes for each in streams)


def _what(stage: Stage) -> str:
    return f"{stage.server.kind}, {stage.provider}, {stage.face}"
