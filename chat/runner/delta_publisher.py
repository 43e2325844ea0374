"""Publish streamed text to the viewers, at most 20 times a second per stream."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chat.bus.events import TextAppended
from chat.bus.publisher import publish

# Seconds between two frames of a stream: normally, and at most while the event loop is busy.
INTERVAL = 0.05
MAX_INTERVAL = 0.2
# The weight of one frame's delay in the moving average, and the factor of the average by which the interval grows.
SMOOTHING = 0.02
STRETCH = 4


@dataclass(eq=False, slots=True)
class OutgoingText:
    """The text of one streaming message that is being published.

    `length` and `sent` count characters; `kind` is the type of the message. Nothing is sent until the message itself
    has been committed and published (`announced`).
    """

    session_id: str
    id: str
    kind: str
    length: int
    sent: int
    announced: bool = False
    parts: list[str] = field(default_factory=list)
    not_before: float = 0.0
    on_announced: Callable[[], None] | None = None

    def announce(self, recorded: asyncio.Future[Any]) -> None:
        """Allow the text to be sent if the message was published. A callback of the write's future."""
        self.announced = not recorded.cancelled() and recorded.exception() is None
        if self.announced and self.on_announced is not None:
            self.on_announced()

    def take(self) -> list[TextAppended]:
        """Return the text that has not been sent, and count it as sent."""
        if not self.parts:
            return []
        text = "".join(self.parts)
        self.parts.clear()
        event = TextAppended(self.id, self.sent, text, self.kind == "reasoning", self.kind == "tool_group")
        self.sent += len(text)
        return [event]


class DeltaPublisher:
    """Sends a stream's first text immediately, and later text once per interval.

    While the event loop is busy, the interval grows, so that frames are fewer instead of late. After `allow_until`,
    another worker may have the session, so text is held back. Each frame checks the monotonic clock, because a timer
    would be late after the process was suspended.
    """

    def __init__(self) -> None:
        self._timers: dict[OutgoingText, asyncio.TimerHandle] = {}
        self._held: set[OutgoingText] = set()
        self._allowed_until = math.inf
        self._average_delay = 0.0

    def allow_until(self, moment: float) -> None:
        """Publish until a time of the monotonic clock, in seconds, and send the text that was held back."""
        self._allowed_until = moment
        held, self._held = self._held, set()
        for stream in held:
            self.add(stream)

    def add(self, stream: OutgoingText) -> None:
        """Send the stream's new text as soon as it is allowed."""
        if stream in self._timers or stream in self._held:
            return
        if not stream.announced:
            stream.on_announced = lambda: self.add(stream)
            return
        loop = asyncio.get_running_loop()
        if loop.time() >= stream.not_before:
            self._send(stream, loop.time())
        else:
            self._timers[stream] = loop.call_at(stream.not_before, self._on_timer, stream)

    def drop(self, stream: OutgoingText) -> None:
        """Stop publishing a stream. The caller takes the remaining text."""
        stream.on_announced = None
        self._held.discard(stream)
        timer = self._timers.pop(stream, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        for stream in [*self._timers, *self._held]:
            self.drop(stream)

    def _on_timer(self, stream: OutgoingText) -> None:
        del self._timers[stream]
        now = asyncio.get_running_loop().time()
        self._average_delay += (now - stream.not_before - self._average_delay) * SMOOTHING
        self._send(stream, now)

    def _send(self, stream: OutgoingText, now: float) -> None:
        if time.monotonic() >= self._allowed_until:
            self._held.add(stream)
            return
        stream.not_before = now + min(MAX_INTERVAL, INTERVAL + STRETCH * self._average_delay)
        publish(stream.session_id, stream.take())
