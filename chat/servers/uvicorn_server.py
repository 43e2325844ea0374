"""uvicorn in `manage.py serve`, with time limits, counted connections, and a close code for sockets at shutdown.

uvicorn limits its buffers in both directions. It does not limit the time for a request's head, for the rest of a
refused body or for an unread response, nor the number of connections. The protocols in this module do.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from chat.servers.frames import FrameEncoder
from chat.servers.limits import (
    CLOSE_SECONDS,
    DROPPED_BYTES,
    LINGER_SECONDS,
    MAX_FRAGMENTS,
    PING_SECONDS,
    PONG_SECONDS,
    READ_BYTES,
    TOO_LARGE,
    UNCOUNTED_BYTES,
    Keepalive,
    Limits,
    StallTimer,
    limits,
)
from chat.servers.responses import FIRST_BYTES, response_bytes
from chat.servers.uvicorn_compression import DEFLATE, Inflate
from config.asgi import application, log_failed_start

# Seconds in which running requests may end after the server was asked to stop.
STOP_SECONDS = 5


class Config(uvicorn.Config):
    """uvicorn's configuration, with Parley's limits."""

    def __init__(self, bounds: Limits) -> None:
        super().__init__(
            application,
            http=HttpProtocol,
            ws=SocketProtocol,
            loop="asyncio",
            interface="asgi3",
            lifespan="on",
            ws_max_size=bounds.longest_frame,
            ws_ping_interval=PING_SECONDS,
            ws_ping_timeout=PONG_SECONDS,
            ws_per_message_deflate=False,  # the protocol below negotiates compression itself
            # The settings decide whether a proxy is trusted, for both servers.
            proxy_headers=False,
            server_header=False,
            headers=[("server", "Parley")],
            access_log=False,
            log_config=None,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        self.bounds = bounds
        if bounds.idle_seconds is not None:
            self.timeout_keep_alive = bounds.idle_seconds


class HttpProtocol(H11Protocol):
    """HTTP with a time limit for each stage of a request, and counted connections."""

    config: Config
    _address: str | None = None
    _head_timer: asyncio.TimerHandle | None = None
    _linger_timer: asyncio.TimerHandle | None = None
    _stall: StallTimer | None = None
    _first_bytes = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        if self.config.bounds.connections.admit(address):
            self._address = address
            self._await_head()
        else:
            self._refuse(429)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timer in (self._head_timer, self._linger_timer, self._stall):
            if timer is not None:
                timer.cancel()
        if self._address is not None:
            self.config.bounds.connections.release(self._address)

    def data_received(self, data: bytes) -> None:
        if self._is_between_requests():
            if self._head_timer is None:
                self._await_head()
            self._first_bytes = (self._first_bytes + data)[:FIRST_BYTES]
        super().data_received(data)
        if not self._is_between_requests():
            self._stop_head_timer()
        if self._linger_timer is not None and self.conn.their_state is not h11.SEND_BODY:
            self._linger_timer.cancel()
            self._linger_timer = None

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._stop_head_timer()
        super().handle_websocket_upgrade(event)
        if isinstance(socket := self.transport.get_protocol(), SocketProtocol):
            socket.address, self._address = self._address, None  # the socket releases it

    def send_400_response(self, msg: str) -> None:
        """Send an error for data that is not HTTP. uvicorn's own method fails if a response has already begun."""
        self._refuse(400)

    def _unsupported_upgrade_warning(self) -> None:
        """Do nothing: the request is answered as if it had not requested an upgrade."""

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self._linger_timer = self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall = self._stall or StallTimer(self.transport)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _is_between_requests(self) -> bool:
        return self.conn.their_state is h11.IDLE

    def _await_head(self) -> None:
        self._first_bytes = b""
        self._head_timer = self.loop.call_later(self.config.bounds.head_seconds, self._head_is_late)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        if self._is_between_requests() and not self.transport.is_closing():
            if self._first_bytes:
                self._refuse(408)
            else:
                self.transport.close()

    def _refuse(self, status: int) -> None:
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self.transport.write(response_bytes(status, self._first_bytes))
        self.transport.close()


class SocketProtocol(WebSocketsSansIOProtocol):
    """WebSockets with counted frames. They end even if the peer does nothing."""

    config: Config
    address: str | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The sizes of the messages that the application has not received yet, and of the one that it is handling.
        self._sizes: deque[int] = deque()
        self._in_hand = 0
        self._ignored = 0
        self._given_up = False
        self._keepalive = Keepalive()
        self._abort_timer: asyncio.TimerHandle | None = None
        self.conn.available_extensions = [DEFLATE]
        self._encoder = FrameEncoder()
        self._inflate: Inflate | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._read_at_most(READ_BYTES)

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
            for extension in self.conn.extensions:
                if isinstance(extension, Inflate):
                    self._inflate, self._encoder = extension, extension.outgoing()
            self.scope["extensions"]["parley.frames"] = {"send_now": self.send_now}

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.config.bounds.frames.forget(self)
        if self._abort_timer is not None:
            self._abort_timer.cancel()
        if self.address is not None:
            self.config.bounds.connections.release(self.address)

    def data_received(self, data: bytes) -> None:
        if self._given_up:
            return
        self._keepalive.note_received()
        is_unread = self.handshake_initiated and (self.close_sent or not self.handshake_complete)
        if self._inflate is not None:
            self._inflate.is_unread, self._inflate.room = is_unread, self.config.bounds.longest_frame
        if is_unread:
            # A client should wait for the answer to its handshake, and send little after a close frame.
            self._ignored += len(data)
            if self._ignored > UNCOUNTED_BYTES:
                self.transport.abort()
                return
        super().data_received(data)
        if not self.handshake_initiated:
            # The library refuses the head, for example because it announces a body. uvicorn would never answer.
            self.transport.write(b"".join(self.conn.data_to_send()) or response_bytes(400))
            self.transport.close()
            return
        self._count()

    def handle_cont(self, event: Frame) -> None:
        if self._given_up:
            return
        super().handle_cont(event)
        if len(self.frames) > MAX_FRAGMENTS:
            self.frames = []
            self.give_up(TOO_LARGE)

    def send_receive_event_to_app(self) -> None:
        self._sizes.append(sum(map(len, self.frames)))
        super().send_receive_event_to_app()

    async def receive(self) -> Any:
        self._in_hand = 0  # the application requests the next message when it has handled the last one
        self._count()
        message = await super().receive()
        if message["type"] == "websocket.receive" and self._sizes:
            self._in_hand = self._sizes.popleft()
        return message

    def _count(self) -> None:
        unfinished = len(self.conn.reader.buffer) + sum(map(len, self.frames))
        self.config.bounds.frames.update(self, unfinished=unfinished, whole=sum(self._sizes) + self._in_hand)

    def give_up(self, code: int) -> None:
        if self.close_sent or self.transport.is_closing():
            return
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code})
        self.conn.fail(code)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = self._given_up = True
        # Read and drop what the peer is sending for a while. Otherwise it would not see the reason.
        self._read_at_most(DROPPED_BYTES)
        self.transport.resume_reading()
        self._abort_soon()

    def _read_at_most(self, size: int) -> None:
        transport: Any = self.transport
        transport.max_size = size  # an attribute of asyncio's transports

    async def send(self, message: Any) -> None:
        if message["type"] == "websocket.close":
            self._abort_soon()
        elif message["type"] == "websocket.send" and isinstance(text := message.get("text"), str):
            await self.writable.wait()
            if self.send_now(text):
                return
        await super().send(message)

    def send_now(self, text: str) -> bool:
        """Send a text and return True. Return False if the connection is full or not open."""
        is_open = self.handshake_complete and not (self.close_sent or self.disconnected)
        if not is_open or not self.writable.is_set() or self.transport.is_closing():
            return False
        self._keepalive.note_sent(len(text))
        self.transport.write(self._encoder.encode(text))
        return True

    def send_keepalive_ping(self) -> None:
        self._encoder.rest()
        super().send_keepalive_ping()
        if self.pong_timer is not None:
            self._await_pong(self._keepalive.note_ping())

    def handle_pong(self, event: Frame) -> None:
        super().handle_pong(event)
        if self.pending_ping_payload is None:
            self._keepalive.note_pong()

    def keepalive_timeout(self) -> None:
        """Close, unless the peer is sending a frame. How slowly it may send is limited elsewhere."""
        if self._keepalive.is_alive() and not self.transport.is_closing():
            self._await_pong(PONG_SECONDS)
            return
        super().keepalive_timeout()
        self._abort_soon()

    def _await_pong(self, seconds: float) -> None:
        if self.pong_timer is not None:
            self.pong_timer.cancel()
        self.pong_timer = self.loop.call_later(seconds, self.keepalive_timeout)

    def shutdown(self) -> None:
        """Close with 1012.

        If earlier data still waits, abort, because the peer would not take the close frame, either.
        """
        if self.writable.is_set():
            super().shutdown()
            self._abort_soon()
        else:
            self.transport.abort()

    def _abort_soon(self) -> None:
        """Abort in CLOSE_SECONDS, so that the close does not wait forever for the peer."""
        if self._abort_timer is None:
            self._abort_timer = self.loop.call_later(CLOSE_SECONDS, self.transport.abort)


class Server(uvicorn.Server):
    """uvicorn's server. It calls `ready`, and returns after a signal instead of letting it end the process."""

    def __init__(self, config: Config, ready: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self.succeeded = False
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        try:
            await self._ready()
            self.succeeded = True
        except Exception as error:
            log_failed_start(error)
            self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGINT and SIGTERM, even if SIGINT was ignored, as it is for a script's background jobs."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._captured_signals.clear()


def serve(listening: socket.socket, ready: Callable[[], Awaitable[None]]) -> bool:
    """Serve until SIGINT or SIGTERM. Await `ready` once the runner has started. Return whether it has started."""
    server = Server(Config(limits()), ready)
    try:
        asyncio.run(server.serve([listening]))
    except SystemExit:  # uvicorn raises it if the start fails; the reason has been logged
        return False
    return server.succeeded
