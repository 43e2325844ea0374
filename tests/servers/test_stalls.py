"""A peer that takes nothing of a response is cut off; one that takes it slowly is not. Reading waits, too."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from chat.servers import uvicorn_server


class Transport(asyncio.Transport):
    """A connection with so many bytes to send, of which the peer takes some now and then."""

    def __init__(self, unsent: int, takes: int) -> None:
        super().__init__()
        self.unsent, self.takes = unsent, takes
        self.aborted = asyncio.Event()
        self.asked = 0

    def get_write_buffer_size(self) -> int:
        self.asked += 1
        self.unsent = max(0, self.unsent - self.takes)
        return self.unsent

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        self.aborted.set()


async def test_uvicorn_waits_for_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn_server, "STALL_SECONDS", 0.001)
    still, slow = Transport(1000, takes=0), Transport(1000, takes=10)

    timers = [uvicorn_server.StallTimer(each) for each in (still, slow)]
    await still.aborted.wait()
    while slow.asked < 5:  # noqa: ASYNC110  # a timer of its own asks
        await asyncio.sleep(0)
    assert not slow.aborted.is_set()
    for timer in timers:
        timer.cancel()


async def test_keepalive_waits_while_a_large_frame_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ping stands behind the frame: its pong cannot come before a slow line has taken all of that."""
    monkeypatch.setattr(uvicorn_server, "PONG_SECONDS", 0.001)
    failed = asyncio.Event()
    monkeypatch.setattr(WebSocketsSansIOProtocol, "keepalive_timeout", lambda self: failed.set())
    socket: Any = uvicorn_server.SocketProtocol.__new__(uvicorn_server.SocketProtocol)
    socket.transport, socket.loop, socket._abort_timer = Transport(1000, takes=100), asyncio.get_running_loop(), None
    socket._unsent = 1000

    socket.keepalive_timeout()
    while socket.transport.unsent:  # its own timer asks
        assert not failed.is_set()
        await asyncio.sleep(0)
    await failed.wait()  # all is taken, and still there is no pong
    socket._abort_timer.cancel()


async def test_daphne_waits_for_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    from chat.servers import daphne_server  # it installs an event loop of Twisted's beside that of the tests

    monkeypatch.setattr(daphne_server, "STALL_SECONDS", 0.001)
    server: Any = daphne_server.BoundedServer.__new__(daphne_server.BoundedServer)
    pace = daphne_server.Pace()
    pace.pauseProducing()
    unsent = iter([1000, 900, 900, 900])  # twice in each round

    class Connection:
        offset = 0
        _tempDataLen = 0  # noqa: N815  # Twisted's name

        @property
        def dataBuffer(self) -> bytes:  # noqa: N802  # likewise
            return bytes(next(unsent))

        def abortConnection(self) -> None:  # noqa: N802  # likewise
            pace.stopProducing()

    await server._drained(SimpleNamespace(pace=pace, transport=Connection()))
    assert list(unsent) == []


async def test_daphne_reads_no_further_than_the_application() -> None:
    """Twisted would read on; what waits is bounded by that, and not only by giving up the connection."""
    from chat.servers import daphne_server  # as above

    class Connection:
        reads = True

        def pauseProducing(self) -> None:  # noqa: N802  # Twisted's name
            self.reads = False

        def resumeProducing(self) -> None:  # noqa: N802  # likewise
            self.reads = True

    connection = Connection()
    queue = daphne_server.InputQueue(connection)
    size = daphne_server.HIGH_WATER // 2 + 1
    part = {"type": "http.request", "body": bytes(size), "more_body": True}
    seen = []
    for _ in range(3):
        queue.put_nowait(part)
        seen.append((queue.held, connection.reads))
    for _ in range(3):
        assert await queue.get() == part
        seen.append((queue.held, connection.reads))
    assert [reads for _held, reads in seen] == [True, False, False, False, True, True]
    assert [held // size for held, _reads in seen] == [1, 2, 3, 3, 2, 1]
