"""The delay that Parley itself adds to the first token, when many sessions start within a second."""

from __future__ import annotations

import asyncio

from bench.figures import both, print_table
from bench.stage import Stage, Stream, spend


async def measure(stage: Stage, counts: list[int], messages: int = 0, beside: int = 0) -> None:
    """Print two times for each number of starts: from Send to the upstream's request, and from its first token to the
    frame.

    Each session has `messages` messages. The database has `beside` further sessions.
    """
    if beside:
        await stage.sessions(beside)
    head = [
        "starts in 1 s",
        "send → request p50 ms",
        "p99",
        "first token → frame p50 ms",
        "p99",
        "own share p50 ms",
        "p99",
    ]
    rows = [[str(count), *await _row(stage, count, messages)] for count in counts]
    about = f"{messages} messages each, {beside} sessions beside"
    print_table(f"First tokens, {stage.server.kind}, {stage.provider}, {stage.face}, {about}", head, rows)


async def _row(stage: Stage, count: int, messages: int) -> list[str]:
    streams = await stage.watch(await stage.sessions(count, messages))
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number, stream in enumerate(streams):
        await asyncio.sleep(max(0.0, began + number / count - loop.time()))
        stage.ask(stream, count=1000)
    await stage.streaming(streams)
    await spend(stage, 1)
    shares = [_shares(stage, stream) for stream in streams]
    await stage.cancel(streams)
    await stage.leave(streams)
    before, after = [first for first, _ in shares], [second for _, second in shares]
    return [*both(before), *both(after), *both([sum(share) for share in shares])]


def _shares(stage: Stage, stream: Stream) -> tuple[float, float]:
    sent = stage.sent(stream)
    assert sent is not None
    return sent.arrived - stream.asked, stream.viewer.seen[0] - sent.times[0]
