"""Daphne inside `manage.py serve` and `manage.py runserver`, with the bounds and the backpressure that it lacks.

By itself Daphne reads a body to its end, and lets Twisted parse it, before the application sees the request; it takes
whatever the application sends; and it queues frames without a limit. The classes here put a streaming request, flow
control both ways, time limits and counted connections in place of that.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from http import HTTPStatus
from io import BytesIO
from socket import socket
from typing import Any
from urllib.parse import unquote

from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.server import Server, twisted_loop
from daphne.utils import HEADER_NAME_RE, INVALID_HEADER_VALUE_BYTES
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from twisted.internet import reactor as twisted_reactor
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Protocol, connectionDone
from twisted.web import http
from zope.interface import implementer

from chat.servers.limits import (
    CLOSE_SECONDS,
    LINGER_SECONDS,
    PING_SECONDS,
    PONG_SECONDS,
    STALL_SECONDS,
    Keepalive,
    Limits,
    limits,
)
from chat.servers.responses import FIRST_BYTES, response_bytes
from config.asgi import application, log_failed_start

reactor: Any = twisted_reactor  # a module that becomes a reactor: nothing types it
Message = dict[str, Any]

# Reading from the network pauses while the application has so many bytes before it.
HIGH_WATER = 64 * 1024
# Applications have this long to end when the server does.
STOP_SECONDS = 5.0
RESTARTING = 1012


@implementer(IPushProducer)
class Pace:
    """Whether a connection can take more: Twisted's transport tells it, those who send wait for it."""

    def __init__(self) -> None:
        self._writable = asyncio.Event()
        self._writable.set()

    def pauseProducing(self) -> None:  # noqa: N802  # Twisted's name
        self._writable.clear()

    def resumeProducing(self) -> None:  # noqa: N802  # likewise
        self._writable.set()

    stopProducing = resumeProducing  # noqa: N815  # likewise: nothing will be sent any more

    @property
    def is_open(self) -> bool:
        return self._writable.is_set()

    async def wait(self) -> None:
        await self._writable.wait()


class InputQueue:
    """What an application has not received yet. While that is much, nothing more is read from the network."""

    def __init__(self, transport: Any, changed: Callable[[], None] = lambda: None) -> None:
        self._transport = transport
        self._changed = changed
        self._queue: asyncio.Queue[Message] = asyncio.Queue()
        self._in_hand = 0
        self._paused = False
        self.waiting = 0

    @property
    def held(self) -> int:
        """The bytes that wait, and those that the application handles."""
        return self.waiting + self._in_hand

    def put_nowait(self, message: Message) -> None:
        self._queue.put_nowait(message)
        self.waiting += _size(message)
        if self.waiting > HIGH_WATER and not self._paused:
            self._paused = True
            self._transport.pauseProducing()

    async def get(self) -> Message:
        self._in_hand = 0  # the application asks for the next message when it has handled the last one
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


class Channel(http.HTTPChannel):
    """One connection of HTTP, whose request heads must come in time."""

    transport: Any
    # By which it is counted; a WebSocket that the connection becomes takes that over.
    address: str | None = None
    _first_bytes = b""
    _head_timer: Any = None

    def connectionMade(self) -> None:  # noqa: N802  # Twisted's name, as below
        self._await_head()
        super().connectionMade()

    def connectionLost(self, reason: Any = connectionDone) -> None:  # noqa: N802
        self._stop_head_timer()
        super().connectionLost(reason)
        if self.address is not None:
            self.bounds.connections.release(self.address)

    @property
    def bounds(self) -> Limits:
        found: Limits = self.factory.server.bounds
        return found

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        if not self.requests:
            if self._head_timer is None:
                self._await_head()
            self._first_bytes = (self._first_bytes + data)[:FIRST_BYTES]
        super().dataReceived(data)

    def allHeadersReceived(self) -> None:  # noqa: N802
        self._stop_head_timer()
        super().allHeadersReceived()
        if self.length != 0:
            self.requests[-1].begin(self._command, self._path, self._version)

    def _respondToBadRequestAndDisconnect(self) -> None:  # noqa: N802
        self.refuse(400)

    def lineLengthExceeded(self, line: bytes) -> None:  # noqa: N802
        self.refuse(400)

    def refuse(self, status: int) -> None:
        """Answer by itself, unless a response has begun, and end the connection."""
        if not any(request.startedWriting for request in self.requests):
            self.transport.write(response_bytes(status, self._first_bytes))
        self.loseConnection()

    def _await_head(self) -> None:
        self._first_bytes = b""
        self._head_timer = reactor.callLater(self.bounds.head_seconds, self._head_is_late)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None and self._head_timer.active():
            self._head_timer.cancel()
        self._head_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        if self._first_bytes:
            self.refuse(408)
        else:
            self.loseConnection()


class Request(WebRequest):
    """A request whose body goes to the application as it arrives; nothing parses it on the way."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.pace = Pace()
        self._has_begun = False
        self._body_is_complete = False
        self._finish_with_body = False
        self._linger_timer: Any = None

    def gotLength(self, length: int | None) -> None:  # noqa: N802  # Twisted's name, as below
        self.content = BytesIO()  # stays empty

    def begin(self, method: bytes, uri: bytes, version: bytes) -> None:
        """Start the application, when the head has been read."""
        self._has_begun = True
        self.method, self.uri, self.clientproto = method, uri, version
        self.path = uri.partition(b"?")[0]
        self.process()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        if self.application_queue is not None and not self._finish_with_body:
            self.application_queue.put_nowait({"type": "http.request", "body": data, "more_body": True})

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:  # noqa: N802
        """Take the end of the body."""
        if not self._has_begun:
            self.begin(command, path, version)
        self._body_is_complete = True
        if self._finish_with_body:
            self._end()
        elif self.application_queue is not None:
            self.application_queue.put_nowait({"type": "http.request", "body": b"", "more_body": False})

    def process(self) -> Any:
        upgrade = self.requestHeaders.getRawHeaders(b"Upgrade", [b""])[0]
        if upgrade.lower() == b"websocket" and self.channel.length == 0:
            return self._become_socket()
        self.request_start = time.time()
        problem = self._problem()
        if problem:
            self.basic_error(400, b"Bad Request", problem)
            return None
        self.application_queue = self.server.create_application(self, self._scope())
        return None

    def _become_socket(self) -> Any:
        channel = self.channel
        processing = super().process()
        if isinstance(socket := channel.transport.protocol, SocketProtocol):
            socket.address, channel.address = channel.address, None
        return processing

    def _problem(self) -> str:
        for name, values in self.requestHeaders.getAllRawHeaders():
            if not HEADER_NAME_RE.fullmatch(name):
                return "Invalid header name"
            if any(INVALID_HEADER_VALUE_BYTES.intersection(value) for value in values):
                return "Invalid header value"
        return "" if self.uri.isascii() else "Invalid characters in address"

    def _scope(self) -> Message:
        peer, host = self.client, self.host
        has_addresses = hasattr(peer, "host") and hasattr(peer, "port")
        self.client_addr = [str(peer.host), peer.port] if has_addresses else None
        self.server_addr = [str(host.host), host.port] if has_addresses else None
        # Daphne takes a path prefix from a header, Daphne-Root-Path, which anybody may send. Names with an underscore
        # could pass for others once they are in Django's META (CVE-2015-0219).
        self.clean_headers = [
            (name.lower(), value)
            for name, values in self.requestHeaders.getAllRawHeaders()
            for value in values
            if b"_" not in name and name.lower() != b"daphne-root-path"
        ]
        return {
            "type": "http",
            "http_version": self.clientproto.split(b"/")[-1].decode("ascii"),
            "method": self.method.decode("ascii"),
            "path": unquote(self.path.decode("ascii")),
            "raw_path": self.path,
            "root_path": self.server.root_path,
            "scheme": "https" if self.isSecure() else "http",
            "query_string": self.uri.partition(b"?")[2],
            "headers": self.clean_headers,
            "client": self.client_addr,
            "server": self.server_addr,
        }

    def setResponseCode(self, code: int, message: bytes | None = None) -> None:  # noqa: N802
        """Name the status; Twisted does not know all of them, 422 among others."""
        super().setResponseCode(code, message or HTTPStatus(code).phrase.encode("ascii"))

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        """Answer an error that Daphne finds."""
        self.channel.refuse(status)

    def handle_reply(self, message: Message) -> None:
        starts = message["type"] == "http.response.start" and not self._response_started
        super().handle_reply(message)
        if starts:
            self.registerProducer(self.pace, True)

    def finish(self) -> None:
        """End the response. What is left of the body is read first: it would be taken for the next request."""
        if self._body_is_complete:
            self._end()
            return
        self._finish_with_body = True
        if self.application_queue is not None:
            self.application_queue.resume()
        self._linger_timer = reactor.callLater(LINGER_SECONDS, self.transport.abortConnection)

    def _end(self) -> None:
        self._stop_timer()
        self.unregisterProducer()
        self.pace.stopProducing()
        super().finish()

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        self._stop_timer()
        self.pace.stopProducing()
        super().connectionLost(reason)

    def _stop_timer(self) -> None:
        if self._linger_timer is not None and self._linger_timer.active():
            self._linger_timer.cancel()


class SocketProtocol(WebSocketProtocol):
    """A WebSocket with flow control, whose frames are counted until they have been handled."""

    address: str | None = None
    muted: bool

    def connectionMade(self) -> None:  # noqa: N802  # Twisted's name, as below
        self.pace = Pace()
        self._unfinished = 0
        self._keepalive = Keepalive()
        self.transport.unregisterProducer()  # the connection of HTTP that this one has been
        self.transport.registerProducer(self.pace, True)
        super().connectionMade()

    def onConnect(self, request: Any) -> Any:  # noqa: N802
        request.headers.pop("daphne-root-path", None)  # see Request
        return super().onConnect(request)

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        super().connectionLost(reason)
        self.pace.stopProducing()
        bounds: Limits = self.factory.server_class.bounds
        bounds.frames.forget(self)
        if self.address is not None:
            bounds.connections.release(self.address)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        self._keepalive.received()
        super().dataReceived(data)

    def serverSend(self, content: Any, binary: bool = False) -> None:  # noqa: N802
        self._keepalive.sent(len(content))
        super().serverSend(content, binary)

    def _sendAutoPing(self) -> None:  # noqa: N802
        """Send a ping, unless one is not answered yet: Autobahn takes a late pong for an answer to the last ping only,
        and forgets the timer of the one before without stopping it."""
        if self.autoPingPending is None:
            self.autoPingTimeout = self._keepalive.pinged()
            super()._sendAutoPing()

    def onAutoPong(self, *details: Any) -> None:  # noqa: N802
        self._keepalive.ponged()

    def onAutoPingTimeout(self) -> None:  # noqa: N802
        """Close, unless the peer is sending a frame: how slowly it may do that is bounded elsewhere."""
        if self._keepalive.is_alive():
            timer = self.factory._batched_timer
            self.autoPingTimeoutCall = timer.call_later(PONG_SECONDS, self.onAutoPingTimeout)
        else:
            super().onAutoPingTimeout()

    def onMessageFrameData(self, payload: bytes) -> None:  # noqa: N802
        if self.muted:  # it is closing
            return
        super().onMessageFrameData(payload)
        self._unfinished += len(payload)
        self.count()

    def onMessage(self, payload: bytes, isBinary: bool) -> None:  # noqa: N802, N803
        self._unfinished = 0
        super().onMessage(payload, isBinary)
        self.count()

    def count(self) -> None:
        held = self.application_queue.held if hasattr(self, "application_queue") else 0
        self.factory.server_class.bounds.frames.update(self, unfinished=self._unfinished, whole=held)

    def give_up(self, code: int) -> None:
        self.end(code)
        self._unfinished = 0
        self.transport.resumeProducing()

    def end(self, code: int) -> None:
        """Close from the server's side, and tell the application."""
        if not self.muted and hasattr(self, "application_queue"):
            self.application_queue.put_nowait({"type": "websocket.disconnect", "code": code})
        self.muted = True
        if self.state == self.STATE_OPEN:
            self.serverClose(code)

    def serverClose(self, code: int | None = None) -> None:  # noqa: N802
        """Close; Autobahn's own way refuses the codes of servers, such as 1012."""
        self.sendCloseFrame(code=1000 if code is None else code)


class RefusedConnection(Protocol):
    """A connection too many."""

    transport: Any

    def connectionMade(self) -> None:  # noqa: N802  # Twisted's name
        self.transport.write(response_bytes(429))
        self.transport.loseConnection()


class ChannelFactory(HTTPFactory):
    """Accepts connections, unless there are too many."""

    protocol = Channel

    def buildProtocol(self, addr: Any) -> Protocol:  # noqa: N802  # Twisted's name
        address = str(getattr(addr, "host", ""))
        if not self.server.bounds.connections.admit(address):
            return RefusedConnection()
        channel: Channel = super().buildProtocol(addr)
        channel.requestFactory = Request
        channel.address = address
        return channel


class BoundedServer(Server):
    """Daphne's server with Parley's protocols."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.bounds = limits()
        options["websocket_max_message_size"] = options["websocket_max_frame_size"] = self.bounds.longest_frame
        super().__init__(*args, **{**options, "server_name": "Parley", "ping_interval": PING_SECONDS})

    # Server.run makes both factories; ours are put in their place.

    @property
    def http_factory(self) -> ChannelFactory:
        return self._http_factory

    @http_factory.setter
    def http_factory(self, factory: HTTPFactory) -> None:
        self._http_factory = ChannelFactory(self)

    @property
    def ws_factory(self) -> WebSocketFactory:
        return self._ws_factory

    @ws_factory.setter
    def ws_factory(self, factory: WebSocketFactory) -> None:
        factory.protocol = SocketProtocol
        # Otherwise Autobahn takes any frame for an answer to the ping, and then does not recognise the pong.
        factory.setProtocolOptions(
            failByDrop=False, closeHandshakeTimeout=CLOSE_SECONDS, autoPingRestartOnAnyTraffic=False
        )
        self._ws_factory = factory

    def create_application(self, protocol: Any, scope: Message) -> InputQueue | None:
        queue = InputQueue(protocol.transport, protocol.count if isinstance(protocol, SocketProtocol) else lambda: None)
        scope.setdefault("asgi", {"version": "3.0"})
        if protocol in self.connections:
            running: Coroutine[Any, Any, None] = self.application(
                scope, queue.get, partial(self.handle_reply, protocol)
            )
            self.connections[protocol]["application_instance"] = asyncio.ensure_future(running)
        return queue

    async def handle_reply(self, protocol: Any, message: Message) -> None:
        """Hand a message to the connection, then wait until that can take more."""
        await super().handle_reply(protocol, message)
        if message["type"] in ("websocket.send", "http.response.body"):
            await self._drained(protocol)

    async def _drained(self, protocol: Any) -> None:
        """Wait for room. A peer that takes nothing at all is cut off."""
        transport = protocol.transport
        while not protocol.pace.is_open:
            before = _unsent(transport)
            try:
                async with asyncio.timeout(STALL_SECONDS):
                    await protocol.pace.wait()
            except TimeoutError:
                if _unsent(transport) >= before:
                    transport.abortConnection()

    def kill_all_applications(self) -> Deferred[None]:
        """End connections with a word before the reactor cuts them."""
        return Deferred.fromFuture(asyncio.ensure_future(self._end_connections()))

    async def _end_connections(self) -> None:
        application.end_streams()
        for protocol in list(self.connections):
            if isinstance(protocol, SocketProtocol):
                protocol.end(RESTARTING)
        running = [found for each in self.connections.values() if (found := each.get("application_instance"))]
        if running:
            await asyncio.wait(running, timeout=STOP_SECONDS)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await application.stop()


def _unsent(transport: Any) -> int:
    """Return the bytes that a transport of Twisted's has not sent yet."""
    return len(transport.dataBuffer) - int(transport.offset) + int(transport._tempDataLen)


def stop_at_sigint() -> None:
    """Let SIGINT end the process where it is ignored, as in the background of a script: Twisted would keep that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def serve(listening: socket, ready: Callable[[], Awaitable[None]]) -> bool:
    """Serve until SIGINT or SIGTERM; await `ready` once the runner runs. Return whether it did run."""
    stop_at_sigint()
    server = BoundedServer(application, endpoints=["the socket that listens already"])
    server.endpoints.clear()  # Daphne wants one to be named, and would open it itself
    server.ready_callable = lambda: _adopt(listening, server)
    starting = twisted_loop.create_task(_start(server, ready))
    server.run()
    twisted_loop.run_until_complete(_finish())
    return not starting.cancelled() and bool(starting.result())


def _adopt(listening: socket, server: BoundedServer) -> None:
    with listening:
        reactor.adoptStreamPort(listening.fileno(), listening.family, server.http_factory)


async def _start(server: BoundedServer, ready: Callable[[], Awaitable[None]]) -> bool:
    try:
        await application.start()
        await ready()
    except Exception as error:
        log_failed_start(error)
        server.stop()
        return False
    return True


async def _finish() -> None:
    """End what is left on the loop, as asyncio.run would."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
