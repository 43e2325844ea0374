"""The cost of a frame for each viewer, when one session streams to many viewers."""

from __future__ import annotations

from collections.abc import Sequence

from bench.figures import both, print_table
from bench.stage import Stage, spend

HEAD = ["viewers", "deliveries/s", "CPU %", "deliveries per CPU second", "p50 ms", "p99 ms"]


async def measure(stage: Stage, counts: Sequence[int], seconds: float) -> None:
    """Print the cost and the latency of frames for each number of viewers."""
    rows = [await _row(stage, count, seconds) for count in counts]
    print_table(f"Viewers of one answer of 50 tokens/s, {stage.server.kind}, {stage.face}", HEAD, rows)


async def _row(stage: Stage, count: int, seconds: float) -> list[str]:
    [session_id] = await stage.sessions(1)
    streams = await stage.watch([session_id] * count)
    await stage.quiet()
    first, *others = streams
    stage.ask(first, count=int((seconds + 20) * 50))
    await stage.streaming(streams)
    for other in others:
        other.name = first.name
    begun = [len(each.viewer.seen) for each in streams]
    frames = sum(each.viewer.frames for each in streams)
    spent = await spend(stage, seconds)
    frames = sum(each.viewer.frames for each in streams) - frames
    sent = stage.sent(first)
    assert sent is not None
    late = [
        seen - left
        for each, start in zip(streams, begun, strict=True)
        for seen, left in zip(each.viewer.seen[start:], sent.times[start:], strict=False)
    ]
    await stage.cancel([first])
    await stage.leave(streams)
    rate = f"{frames / spent.seconds:,.0f}", f"{spent.share * 100:.0f}", f"{frames / spent.cpu:,.0f}"
    return [str(count), *rate, *both(late)]
