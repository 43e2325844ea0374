"""A peer that reads nothing of a response is cut off; one that reads slowly is not. Reading pauses, too."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.tcp import Connection
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from chat.servers import limits, uvicorn_server
from chat.servers.limits import PONG_SECONDS, READ_BYTES, SLOWEST_BYTES_PER_SECOND, Keepalive


class Transport(asyncio.Transport):
    """A connection with `unsent` bytes, of which the peer takes `takes` at each check."""

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
    monkeypatch.setattr(limits, "STALL_SECONDS", 0.001)
    still, slow = Transport(1000, takes=0), Transport(1000, takes=10)

    timers = [limits.StallTimer(each) for each in (still, slow)]
    await still.aborted.wait()
    while slow.asked < 5:  # noqa: ASYNC110  # its own timer checks
        await asyncio.sleep(0)
    assert not slow.aborted.is_set()
    for timer in timers:
        timer.cancel()


def test_pong_may_take_as_long_as_what_was_sent_before() -> None:
    """A pong may come after a large frame that takes 61 seconds on a slow line, so the ping's timeout includes that
    time."""
    keepalive = Keepalive()
    keepalive.note_sent(500_000)
    assert keepalive.note_ping() == PONG_SECONDS + 500_000 / SLOWEST_BYTES_PER_SECOND
    keepalive.note_sent(8192)  # sent after the ping, so its pong does not wait for this
    keepalive.note_pong()
    assert keepalive.note_ping() == PONG_SECONDS + 1


def test_peer_that_is_sending_is_alive() -> None:
    """A pong may come after a frame that the peer is still sending. Data from before the ping proves nothing."""
    keepalive = Keepalive()
    keepalive.note_received()
    keepalive.note_ping()
    assert not keepalive.is_alive()
    keepalive.note_received()
    assert [keepalive.is_alive(), keepalive.is_alive()] == [True, False]


async def test_uvicorn_closes_only_a_peer_that_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn_server, "PONG_SECONDS", 0.001)
    failed = asyncio.Event()
    monkeypatch.setattr(WebSocketsSansIOProtocol, "keepalive_timeout", lambda self: failed.set())
    socket: Any = uvicorn_server.SocketProtocol.__new__(uvicorn_server.SocketProtocol)
    socket.transport, socket.loop, socket._abort_timer = Transport(0, takes=0), asyncio.get_running_loop(), None
    socket.pong_timer, socket._keepalive = None, Keepalive()

    socket._keepalive.note_received()  # a part of a frame
    socket.keepalive_timeout()
    assert not failed.is_set()
    await failed.wait()  # nothing has arrived since then
    socket._abort_timer.cancel()


async def test_daphne_closes_only_a_peer_that_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one ping is open at a time, because with two Autobahn forgets the first timer and closes despite the
    pong."""
    from chat.servers import daphne_connections  # it installs one of Twisted's event loops next to that of the tests

    base: Any = daphne_connections.SocketProtocol.__base__
    dropped, timers, pings = [], [], []
    monkeypatch.setattr(base, "onAutoPingTimeout", lambda self: dropped.append(self))

    def ping(self: Any) -> None:
        self.autoPingPending = b"ping"
        pings.append(self.autoPingTimeout)

    monkeypatch.setattr(base, "_sendAutoPing", ping)
    socket: Any = daphne_connections.SocketProtocol.__new__(daphne_connections.SocketProtocol)
    timer = SimpleNamespace(call_later=lambda seconds, function: timers.append((seconds, function)))
    socket.factory, socket._keepalive, socket.autoPingPending = SimpleNamespace(_batched_timer=timer), Keepalive(), None

    socket._keepalive.note_sent(8192)
    socket._sendAutoPing()
    socket._sendAutoPing()
    assert pings == [PONG_SECONDS + 1]
    socket._keepalive.note_received()  # a part of a frame
    socket.onAutoPingTimeout()
    assert (dropped, timers) == ([], [(PONG_SECONDS, socket.onAutoPingTimeout)])
    socket.onAutoPingTimeout()
    assert dropped == [socket]


async def test_daphne_waits_for_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    from chat.servers import daphne_flow, daphne_server  # imported here for the same reason

    monkeypatch.setattr(daphne_server, "STALL_SECONDS", 0.001)
    server: Any = daphne_server.BoundedServer.__new__(daphne_server.BoundedServer)
    pace = daphne_flow.Pace()
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

    await server._wait_until_drained(SimpleNamespace(pace=pace, transport=Connection()))
    assert list(unsent) == []


async def test_daphne_reads_no_further_than_the_application() -> None:
    """Daphne pauses reading when the application does; Twisted would read on, and the limit on waiting data would not
    hold."""
    from chat.servers import daphne_flow

    class Connection:
        reads = True

        def pauseProducing(self) -> None:  # noqa: N802  # Twisted's name
            self.reads = False

        def resumeProducing(self) -> None:  # noqa: N802  # likewise
            self.reads = True

    connection = Connection()
    queue = daphne_flow.InputQueue(connection)
    size = daphne_flow.HIGH_WATER // 2 + 1
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


async def test_uvicorn_reads_little_at_a_time() -> None:
    """A read of tiny frames occupied the event loop for a third of a second."""
    sizes: list[int] = []

    class Socket(uvicorn_server.SocketProtocol):
        def __init__(self) -> None:
            super().__init__(uvicorn_server.Config(limits.limits()), ServerState(), {})

        def data_received(self, data: bytes) -> None:
            sizes.append(len(data))

    server = await asyncio.get_running_loop().create_server(Socket, "127.0.0.1", 0)
    async with server:
        _reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(bytes(10 * READ_BYTES))
        async with asyncio.timeout(10):
            while sum(sizes) < 10 * READ_BYTES:  # noqa: ASYNC110  # the server's transport reads
                await asyncio.sleep(0.01)
        writer.close()
    assert max(sizes) <= READ_BYTES


def test_daphne_reads_little_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from chat.servers import daphne_connections  # imported here for the same reason as above

    base: Any = daphne_connections.SocketProtocol.__base__
    monkeypatch.setattr(base, "connectionMade", lambda self: None)
    socket: Any = daphne_connections.SocketProtocol.__new__(daphne_connections.SocketProtocol)
    socket.transport = Connection.__new__(Connection)
    monkeypatch.setattr(Connection, "registerProducer", lambda *_: None)
    monkeypatch.setattr(Connection, "unregisterProducer", lambda *_: None)
    assert Connection.bufferSize > READ_BYTES  # Twisted reads this many bytes by itself
    socket.connectionMade()
    assert socket.transport.bufferSize == READ_BYTES
