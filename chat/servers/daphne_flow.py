"""Flow control of Daphne's connections: sending waits for the peer, and reading waits for the application."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

Message = dict[str, Any]

# Reading from the network pauses while this many bytes wait for the application.
HIGH_WATER = 64 * 1024


@implementer(IPushProducer)
class Pace:
    """The state whether a connection can take more. Twisted's transport sets it, and senders wait for it."""

    def __init__(self) -> None:
        self._writable = asyncio.Event()
        self._writable.set()

    def pauseProducing(self) -> None:  # noqa: N802  # Twisted's name
        self._writable.clear()

    def resumeProducing(self) -> None:  # noqa: N802  # likewise
        self._writable.set()

    stopProducing = resumeProducing  # noqa: N815  # likewise: nothing more will be sent

    @property
    def is_open(self) -> bool:
        return self._writable.is_set()

    async def wait(self) -> None:
        await self._writable.wait()


class InputQueue:
    """The messages that an application has not received yet. If they are large, reading from the network pauses."""

    def __init__(self, transport: Any, changed: Callable[[], None] = lambda: None) -> None:
        self._transport = transport
        self._changed = changed
        self._queue: asyncio.Queue[Message] = asyncio.Queue()
        self._in_hand = 0
        self._paused = False
        self.waiting = 0

    @property
    def held(self) -> int:
        """The number of bytes that wait for the application or are being handled by it."""
        return self.waiting + self._in_hand

    def put_nowait(self, message: Message) -> None:
        self._queue.put_nowait(message)
        self.waiting += _size(message)
        if self.waiting > HIGH_WATER and not self._paused:
            self._paused = True
            self._transport.pauseProducing()

    async def get(self) -> Message:
        self._in_hand = 0  # the application requests the next message when it has handled the last one
        self._changed()
        message = await self._queue.get()
        self._in_hand = _size(message)
        self.waiting -= self._in_hand
        if self._paused and self.waiting <= HIGH_WATER:
            self.resume()
        return message

    def resume(self) -> None:
        if self._paused:
            self._paused = False
            self._transport.resumeProducing()


def _size(message: Message) -> int:
    return len(message.get("body") or message.get("text") or message.get("bytes") or b"")
