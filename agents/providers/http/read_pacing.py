"""Pauses between the reads of a stream. Each read then returns more tokens, which costs less CPU time in total.

This overrides how the SDK's HTTP transport reads: `connection_of` finds its connection, and `pause` stops reading from
it. docs/performance.md has the gain, and PACE_READS switches it off. If a new version of the transport is built
differently, tests/agents/test_read_pacing.py fails; streams then work as before, but each read costs more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import ceil

import httpx2

from agents.events import ProviderEvent, ReasoningDelta, TextDelta, ToolCallDelta

PACE_READS = True
Delta = TextDelta | ReasoningDelta | ToolCallDelta
# In seconds. A token that is read alone costs several times as much as one that is read with others. So a stream pauses
# for MIN_PAUSE between two reads, which is about the time between two frames. While many streams are open, it
# pauses longer, up to a limit that users do not notice.
MIN_PAUSE = 0.05
PAUSE_PER_STREAM = 0.0005
MAX_PAUSE = 0.16
# Pauses end together, at multiples of this many seconds, because an iteration of the event loop that many streams share
# costs less than one for each stream.
STEP = 0.02


class ReadPacer:
    """The number of open streams of a process, and the pause between their reads."""

    def __init__(self) -> None:
        self.streams = 0

    @contextmanager
    def stream(self) -> Generator[None, None, None]:
        """Count a stream as open during the context."""
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1

    @property
    def pause(self) -> float:
        """The seconds to pause after each read."""
        if not PACE_READS:
            return 0.0
        return min(MAX_PAUSE, max(MIN_PAUSE, self.streams * PAUSE_PER_STREAM))


read_pacer = ReadPacer()


def connection_of(response: httpx2.Response) -> asyncio.ReadTransport | None:
    """Return the connection of a response, or None if it is not found. The SDKs do not expose it."""
    stream = getattr(response.stream, "_stream", None)
    connection = getattr(getattr(stream, "_aiohttp_response", None), "connection", None)
    return getattr(connection, "transport", None)


async def pause(seconds: float, connection: asyncio.ReadTransport | None) -> None:
    """Let other tasks run, and stop reading for that time, because receiving a packet costs more than parsing it."""
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
    """Return the time of the first step at or after `time`, at which a pause ends."""
    return ceil(time / STEP) * STEP


def merge_deltas(events: Iterable[ProviderEvent]) -> Iterator[ProviderEvent]:
    """Merge adjacent deltas of the same kind and the same call, so that text that arrived together is one event."""
    first: Delta | None = None
    pieces: list[str] = []
    try:
        for event in events:
            continues = type(event) is type(first) and getattr(event, "key", None) == getattr(first, "key", None)
            if first is not None and not continues:
                yield _join(first, pieces)
                first = None
            if isinstance(event, Delta):
                first = first or event
                pieces.append(event.text)
            else:
                yield event
    except Exception:
        if first is not None:
            yield _join(first, pieces)
        raise
    if first is not None:
        yield _join(first, pieces)


def _join(first: Delta, pieces: list[str]) -> Delta:
    text = "".join(pieces)
    pieces.clear()
    return replace(first, text=text)
