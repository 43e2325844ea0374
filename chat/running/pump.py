"""The pump: what has streamed since the last frame, sent on to the viewers at most 20 times a second."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from chat.events import TextAppended
from chat.live.publish import publish

INTERVAL = 0.05
LONGEST_INTERVAL = 0.2


@dataclass(eq=False, slots=True)
class LiveStream:
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

    def announce(self, recorded: asyncio.Future[Any]) -> None:
        """Let the text follow now that the message has been told; a future's callback."""
        self.announced = not recorded.cancelled() and recorded.exception() is None

    def take(self) -> list[TextAppended]:
        """Hand over what has not been sent."""
        if not self.parts:
            return []
        text = "".join(self.parts)
        self.parts.clear()
        event = TextAppended(self.id, self.sent, text, self.reasoning)
        self.sent += len(text)
        return [event]


class Pump:
    """One timer for all streams of a process. When the loop cannot keep up, frames become fewer, not later."""

    def __init__(self) -> None:
        self._dirty: dict[LiveStream, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._interval = INTERVAL
        self._due = 0.0

    def add(self, stream: LiveStream) -> None:
        """Send the stream's new text with the next frame."""
        self._dirty[stream] = None
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._due = loop.time() + self._interval
            self._timer = loop.call_at(self._due, self._tick)

    def drop(self, stream: LiveStream) -> None:
        self._dirty.pop(stream, None)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        late = asyncio.get_running_loop().time() - self._due
        self._interval = (
            min(LONGEST_INTERVAL, self._interval * 1.25) if late > 0.02 else max(INTERVAL, self._interval * 0.9)
        )
        self._timer = None
        ready = [stream for stream in self._dirty if stream.announced]
        waiting = [stream for stream in self._dirty if not stream.announced]
        self._dirty.clear()
        for stream in ready:
            publish(stream.session_id, stream.take())
        for stream in waiting:
            self.add(stream)
