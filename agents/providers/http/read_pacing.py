"""Pause between the reads of a stream: each read then brings more tokens, which costs less in all.

Overrides how the SDK's HTTP transport reads: `connection_of` finds its connection, and `pause` stops reading from it.
The gain is in docs/performance.md; PACE_READS switches it off; tests/agents/test_read_pacing.py fails when the
transport is built differently, and reading then costs more and works as before.
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
# Seconds. A token that is read alone costs several times what it costs among others. A stream pauses this long between
# two reads, which is about the time between two frames, and longer while many streams are open, up to a limit that
# users do not notice.
SHORTEST_PAUSE = 0.05
PAUSE_PER_STREAM = 0.0005
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
        """Return the seconds to pause after each read."""
        if not PACE_READS:
            return 0.0
        return min(LONGEST_PAUSE, max(SHORTEST_PAUSE, self.streams * PAUSE_PER_STREAM))


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
    """Merge neighbouring deltas of one kind, or one call: what arrived together is handled together."""
    first: Delta | None = None
    pieces: list[str] = []
    try:
        for event in events:
            if first is not None and not _continues(event, first):
                yield _joined(first, pieces)
                first = None
            if isinstance(event, Delta):
                first = first or event
                pieces.append(event.text)
            else:
                yield event
    except Exception:
        if first is not None:
            yield _joined(first, pieces)
        raise
    if first is not None:
        yield _joined(first, pieces)


def _continues(event: ProviderEvent, first: Delta) -> bool:
    same_call = getattr(event, "key", None) == getattr(first, "key", None)
    return type(event) is type(first) and same_call


def _joined(first: Delta, pieces: list[str]) -> Delta:
    text = "".join(pieces)
    pieces.clear()
    return replace(first, text=text)
