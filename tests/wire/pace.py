"""A writer that sends a stream's tokens at a steady rate with little CPU, so that hundreds fit beside a benchmark."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator


class PacedWriter:
    """A writer of chunked-encoded frames, which sends from a timer directly to the transport, without a task per
    token."""

    def __init__(self, transport: asyncio.Transport, frames: Iterator[bytes], rate: float) -> None:
        self._transport = transport
        self._frames = frames
        self._interval = 1 / rate
        self._loop = asyncio.get_running_loop()
        self._at = self._loop.time()
        self._done = self._loop.create_future()
        self._timer = self._loop.call_soon(self._tick)

    async def finish(self) -> None:
        """Wait until everything is written or the client has disconnected."""
        try:
            await self._done
        finally:
            self._timer.cancel()

    def _tick(self) -> None:
        frame = None if self._transport.is_closing() else next(self._frames, None)
        if frame is None:
            if not self._done.done():
                self._done.set_result(None)
            return
        self._transport.write(b"%x\r\n%b\r\n" % (len(frame), frame))
        self._at += self._interval
        self._timer = self._loop.call_at(self._at, self._tick)
