"""A viewer's socket that costs as little as possible: it cuts WebSocket frames directly from the received bytes."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import struct
import time
import zlib
from collections.abc import Callable
from typing import Any

from bench.text import last_word

OnFrame = Callable[[bytes, float], None]


class Viewer(asyncio.Protocol):
    """A socket on one session. It accepts compressed frames, as browsers do.

    `seen[n]` is the monotonic time at which token n was first shown. `bytes` is the number of bytes received.
    """

    def __init__(self, path: str, cookie: str, host: str) -> None:
        self.seen: list[float] = []
        self.frames = 0
        self.bytes = 0
        self.closed = False
        self._head = (
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"
            f"Origin: http://{host}\r\nCookie: {cookie}\r\n\r\n"
        )
        self._buffer = bytearray()
        self._inflater = zlib.decompressobj(-15)
        self._open: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting: list[tuple[bytes, asyncio.Future[float]]] = []
        self._transport: asyncio.Transport | None = None

    async def connected(self) -> None:
        await self._open

    def send(self, **command: Any) -> float:
        """Send a command, and return the monotonic time."""
        payload = json.dumps(command).encode()
        assert self._transport
        assert len(payload) < 65536
        size = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + struct.pack(">H", len(payload))
        self._transport.write(b"\x81" + size + b"\0\0\0\0" + payload)  # a mask of zeros leaves the text as it is
        return time.monotonic()

    def wait_for(self, part: bytes) -> asyncio.Future[float]:
        """Return a future of the time at which the next frame with these bytes arrives."""
        found: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append((part, found))
        return found

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._head.encode())

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        error = error or ConnectionError("the server closed the socket")
        futures: list[asyncio.Future[Any]] = [self._open, *(found for _, found in self._waiting)]
        for future in futures:
            if not future.done():
                future.set_exception(error)
                future.exception()

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        self._buffer += data
        if not self._open.done() and not self._opened():
            return
        self._cut(now)

    def _opened(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        if not self._buffer.startswith(b"HTTP/1.1 101"):
            self._open.set_exception(ConnectionError(self._buffer[:end].decode()))
            return False
        del self._buffer[: end + 4]
        self._open.set_result(None)
        return True

    def _cut(self, now: float) -> None:
        buffer, start = self._buffer, 0
        while len(buffer) - start >= 2:
            size, at = buffer[start + 1], start + 2
            if size == 126:
                size, at = int.from_bytes(buffer[start + 2 : start + 4]), start + 4
            elif size == 127:
                size, at = int.from_bytes(buffer[start + 2 : start + 10]), start + 10
            if len(buffer) < at + size:
                break
            self.bytes += at + size - start
            if buffer[start] == 0x81:
                self._take(bytes(buffer[at : at + size]), now)
            elif buffer[start] == 0xC1:
                self._take(self._inflater.decompress(buffer[at : at + size] + b"\0\0\xff\xff"), now)
            start = at + size
        del buffer[:start]

    def _take(self, frame: bytes, now: float) -> None:
        self.frames += 1
        missing = last_word(frame) + 1 - len(self.seen)
        if missing > 0:
            self.seen.extend([now] * missing)
        if self._waiting:
            self._answer(frame, now)

    def _answer(self, frame: bytes, now: float) -> None:
        for waiting in [each for each in self._waiting if each[0] in frame]:
            self._waiting.remove(waiting)
            if not waiting[1].done():
                waiting[1].set_result(now)


async def open_viewer(port: int, path: str, cookie: str) -> Viewer:
    """Return a connected viewer, after the WebSocket handshake."""
    host = f"127.0.0.1:{port}"
    loop = asyncio.get_running_loop()
    _, viewer = await loop.create_connection(lambda: Viewer(path, cookie, host), "127.0.0.1", port)
    await viewer.connected()
    return viewer
