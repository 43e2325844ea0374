"""The pump: what has streamed since the last frame, sent on to the viewers at most 20 times a second."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chat.bus.events import TextAppended
from chat.bus.publisher import publish

INTERVAL = 0.05
LONGEST_INTERVAL = 0.2
# How much of a frame's lateness goes into the pump's idea of it, and how much longer late frames are apart.
SMOOTHING = 0.02
STRETCH = 4


def _nobody() -> None:
    """Ignore the result of publishing."""


@dataclass(eq=False, slots=True)
class OutgoingText:
    """The growing text of one message on its way out. `length` and `sent` count characters.

    Nothing is sent before the message itself has been committed and told (`announced`).
    """

    session_id: str
    id: str
    reasoning: bool
    length: int
    sent: int
    announced: bool = False
    parts: list[str] = field(default_factory=list)
    not_before: float = 0.0
    on_announced: Callable[[], None] = _nobody

    def announce(self, recorded: asyncio.Future[Any]) -> None:
        """Release the text now that its message has been published; a future's callback."""
        self.announced = not recorded.cancelled() and recorded.exception() is None
        if self.announced:
            self.on_announced()

    def take(self) -> list[TextAppended]:
        """Hand over what has not been sent."""
        if not self.parts:
            return []
        text = "".join(self.parts)
        self.parts.clear()
        event = TextAppended(self.id, self.sent, text, self.reasoning)
        self.sent += len(text)
        return [event]


class DeltaPublisher:
    """Each stream's first text goes at once, what follows when its interval is over.

    When the loop cannot keep up, frames become fewer, not later. Text is held back while another worker may have the
    session: after `allow_until`, by the monotonic clock, which is asked at each frame. A timer would be late just when
    it matters, after the process was suspended.
    """

    def __init__(self) -> None:
        self._timers: dict[OutgoingText, asyncio.TimerHandle] = {}
        self._held: set[OutgoingText] = set()
        self._allowed_until = math.inf
        self._late = 0.0

    def allow_until(self, moment: float) -> None:
        """Publish until then; what was held back goes out now."""
        self._allowed_until = moment
        held, self._held = self._held, set()
        for stream in held:
            self.add(stream)

    def add(self, stream: OutgoingText) -> None:
        """Send the stream's new text as soon as it may go."""
        if stream in self._timers or stream in self._held:
            return
        if not stream.announced:
            stream.on_announced = lambda: self.add(stream)
            return
        loop = asyncio.get_running_loop()
        if loop.time() >= stream.not_before:
            self._send(stream, loop.time())
        else:
            self._timers[stream] = loop.call_at(stream.not_before, self._due, stream)

    def drop(self, stream: OutgoingText) -> None:
        """Forget a stream; its owner takes what is left."""
        stream.on_announced = _nobody
        self._held.discard(stream)
        timer = self._timers.pop(stream, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        for stream in [*self._timers, *self._held]:
            self.drop(stream)

    @property
    def interval(self) -> float:
        """The least time between two frames of one stream, in seconds."""
        return min(LONGEST_INTERVAL, INTERVAL + STRETCH * self._late)

    def _due(self, stream: OutgoingText) -> None:
        del self._timers[stream]
        now = asyncio.get_running_loop().time()
        self._late += (now - stream.not_before - self._late) * SMOOTHING
        self._send(stream, now)

    def _send(self, stream: OutgoingText, now: float) -> None:
        if time.monotonic() >= self._allowed_until:
            self._held.add(stream)
            return
        stream.not_before = now + self.interval
        publish(stream.session_id, stream.take())
