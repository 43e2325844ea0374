"""Read less often while many streams are open: each read then brings more tokens, which costs less in all.

Overrides how the SDK's HTTP transport reads: `connection_of` finds its connection, and `pause` stops reading from it.
The gain is in docs/performance.md; PACE_READS switches it off; tests/agents/test_read_pacing.py fails when the
transport is built differently, and reading then costs more and works as before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from math import ceil

import httpx2

from agents.events import ProviderEvent, ReasoningDelta, TextDelta

PACE_READS = True
# Seconds. A token that is read alone costs several times what it costs among others. A few streams can afford it; with
# many, each pauses this long per open stream between two reads, up to a limit that users do not notice.
PAUSE_PER_STREAM = 0.001
SHORTEST_PAUSE = 0.03
LONGEST_PAUSE = 0.16
# Pauses end together, at multiples of this: a turn of the loop that many streams share costs each of them less than one
# of its own.
STEP = 0.02


class ReadPacer:
    """Count the open streams of a process, and pace their reads."""

    def __init__(self) -> None:
        self.streams = 0

    @contextmanager
    def stream(self) -> Generator[None, None, None]:
        """Count a stream while it is open."""
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1

    @property
    def pause(self) -> float:
        """Return the seconds to pause after each read; 0 while few streams are open."""
        seconds = min(LONGEST_PAUSE, self.streams * PAUSE_PER_STREAM)
        return seconds if seconds >= SHORTEST_PAUSE and PACE_READS else 0.0


read_pacer = ReadPacer()


def connection_of(response: httpx2.Response) -> asyncio.ReadTransport | None:
    """Return the connection of a response, which the SDKs do not expose; None if it cannot be found."""
    stream = getattr(response.stream, "_stream", None)
    connection = getattr(getattr(stream, "_aiohttp_response", None), "connection", None)
    return getattr(connection, "transport", None)


async def pause(seconds: float, connection: asyncio.ReadTransport | None) -> None:
    """Let other tasks run, and pause reading: to receive a packet costs more than to parse it."""
    if not seconds or connection is None or connection.is_closing():
        await asyncio.sleep(seconds)
        return
    connection.pause_reading()
    try:
        now = asyncio.get_running_loop().time()
        await asyncio.sleep(next_step(now + seconds) - now)
    finally:
        connection.resume_reading()


def next_step(time: float) -> float:
    """Return the end of a pause that should end at `time`."""
    return ceil(time / STEP) * STEP


def merge_deltas(events: Iterable[ProviderEvent]) -> Iterator[ProviderEvent]:
    """Merge neighbouring deltas of one kind: what arrived together is handled together."""
    kind: type[TextDelta] | type[ReasoningDelta] = TextDelta
    pieces: list[str] = []
    try:
        for event in events:
            if pieces and type(event) is not kind:
                yield kind("".join(pieces))
                pieces.clear()
            if isinstance(event, TextDelta | ReasoningDelta):
                kind = type(event)
                pieces.append(event.text)
            else:
                yield event
    except Exception:
        if pieces:
            yield kind("".join(pieces))
        raise
    if pieces:
        yield kind("".join(pieces))
