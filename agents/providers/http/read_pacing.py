"""How often the streams of a process look for news: the more of them there are, the more each look brings."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from math import ceil

import httpx2

from agents.events import ProviderEvent, ReasoningDelta, TextDelta

# Reading a token by itself costs several times what it costs among others. A few streams can afford it; of many,
# each rests this long between two looks for every stream that is open, but never so long that a person would mind.
REST_PER_STREAM = 0.001
LEAST_REST = 0.03
LONGEST_REST = 0.16
# Rests end together, at multiples of this: a turn of the loop that many streams share costs each of them less than one
# of its own.
MARK = 0.02


class ReadPacer:
    """Counts the open streams of a process."""

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
    def rest(self) -> float:
        """Seconds to rest after each look; 0 while few streams are open."""
        seconds = min(LONGEST_REST, self.streams * REST_PER_STREAM)
        return seconds if seconds >= LEAST_REST else 0.0


beat = ReadPacer()


def connection_of(response: httpx2.Response) -> asyncio.ReadTransport | None:
    """Find the connection on which a response comes; None where it is not to be found.

    The SDKs do not show it. Where they are built otherwise one day, reading costs more and works as before.
    """
    stream = getattr(response.stream, "_stream", None)
    connection = getattr(getattr(stream, "_aiohttp_response", None), "connection", None)
    return getattr(connection, "transport", None)


async def rest(seconds: float, connection: asyncio.ReadTransport | None) -> None:
    """Give other tasks their turn. What comes meanwhile is left to the operating system: taking a packet in costs
    more than reading what it says."""
    if not seconds or connection is None or connection.is_closing():
        await asyncio.sleep(seconds)
        return
    connection.pause_reading()
    try:
        now = asyncio.get_running_loop().time()
        await asyncio.sleep(next_mark(now + seconds) - now)
    finally:
        connection.resume_reading()


def next_mark(time: float) -> float:
    """When a rest ends that should end then."""
    return ceil(time / MARK) * MARK


def joined(events: Iterable[ProviderEvent]) -> Iterator[ProviderEvent]:
    """Make one delta of neighbouring deltas: what arrived together is handled together."""
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
