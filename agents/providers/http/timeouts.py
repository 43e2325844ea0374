"""A timeout for the reads of a stream, at almost no cost per read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


class ReadTimeout:
    """Like asyncio.timeout around each of many reads, with one timer for all of them.

    asyncio.timeout makes and cancels a timer per read, which costs as much as parsing what was read. Here a read
    only notes its deadline; the timer looks at it when it fires. It never interrupts anything but the read, so it
    may live in an async generator, whose consumer must not be cancelled while it holds an event.
    """

    def __init__(self, error: Callable[[float], Exception]) -> None:
        """`error` makes the exception to raise; it gets the number of seconds."""
        self._error = error
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._reader: asyncio.Task[object] | None = None
        self._expired = False

    async def wait_for(self, awaitable: Awaitable[T], seconds: float) -> T:
        """Return the result of an awaitable. After so many seconds, cancel it and raise the error."""
        reader = asyncio.current_task()
        if reader is None:
            raise RuntimeError("only a task can wait")
        cancels = reader.cancelling()
        self._expired = False
        self._deadline = self._loop.time() + seconds
        self._reader = reader
        if self._timer is None or self._timer.when() > self._deadline:
            self._set_timer(self._deadline)
        try:
            return await awaitable
        except asyncio.CancelledError:
            if self._expired and reader.uncancel() <= cancels:
                raise self._error(seconds) from None
            raise
        finally:
            self._reader = None

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer:
            self._timer.cancel()

    def _set_timer(self, when: float) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._reader is None:
            return
        if self._loop.time() < self._deadline:
            self._set_timer(self._deadline)
        else:
            self._expired = True
            self._reader.cancel()
