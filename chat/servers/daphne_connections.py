"""Connections of Daphne: HTTP and WebSockets with limits and backpressure.

Without these classes, Daphne reads a complete body, and lets Twisted parse it, before the application gets the request.
It accepts everything that the application sends, and queues frames without a limit. The classes replace that by
streamed requests, flow control in both directions, time limits and counted connections.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from http import HTTPStatus
from io import BytesIO
from typing import Any
from urllib.parse import unquote

import daphne.server  # noqa: F401  # chooses the reactor, which the next import would do otherwise
from autobahn.websocket.compress import PerMessageDeflateOffer, PerMessageDeflateOfferAccept
from daphne.http_protocol import WebRequest
from daphne.utils import HEADER_NAME_RE, INVALID_HEADER_VALUE_BYTES
from daphne.ws_protocol import WebSocketProtocol
from twisted.internet import reactor as twisted_reactor
from twisted.internet.protocol import Protocol, connectionDone
from twisted.web import http

from chat.servers.daphne_flow import Message, Pace
from chat.servers.frames import FrameEncoder
from chat.servers.limits import (
    DROPPED_BYTES,
    LINGER_SECONDS,
    MAX_FRAGMENTS,
    PONG_SECONDS,
    READ_BYTES,
    TOO_LARGE,
    Keepalive,
    Limits,
)
from chat.servers.responses import FIRST_BYTES, response_bytes

reactor: Any = twisted_reactor  # a module that becomes a reactor, which has no types

# Opcodes from this one on are those of control frames.
FIRST_CONTROL = 8


class Channel(http.HTTPChannel):
    """One HTTP connection. The head of each request must arrive in time."""

    transport: Any
    # The address under which the connection is counted. If it becomes a WebSocket, that takes the address over.
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
        """Send an error response, unless another response has begun, and end the connection."""
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
    """A request whose body is passed to the application as it arrives, without being parsed."""

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
        """Start the application, after the head has been read."""
        self._has_begun = True
        self.method, self.uri, self.clientproto = method, uri, version
        self.path = uri.partition(b"?")[0]
        self.process()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        if self.application_queue is not None and not self._finish_with_body:
            self.application_queue.put_nowait({"type": "http.request", "body": data, "more_body": True})

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:  # noqa: N802
        """Handle the end of the body."""
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
        codings = self.requestHeaders.getRawHeaders(b"Transfer-Encoding", [])
        if any(coding.lower() != b"chunked" for coding in codings):
            return "Unknown transfer coding"  # Twisted accepts `identity`, and takes the body for the next request
        return "" if self.uri.isascii() else "Invalid characters in address"

    def _scope(self) -> Message:
        peer, host = self.client, self.host
        has_addresses = hasattr(peer, "host") and hasattr(peer, "port")
        self.client_addr = [str(peer.host), peer.port] if has_addresses else None
        self.server_addr = [str(host.host), host.port] if has_addresses else None
        # Daphne reads a path prefix from the header Daphne-Root-Path, which any client can send. Names with an
        # underscore could be mistaken for other headers in Django's META (CVE-2015-0219).
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
        """Set the status with its phrase. Twisted does not know some statuses, such as 422."""
        super().setResponseCode(code, message or HTTPStatus(code).phrase.encode("ascii"))

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        """Send a response for an error that Daphne finds."""
        self.channel.refuse(status)

    def handle_reply(self, message: Message) -> None:
        starts = message["type"] == "http.response.start" and not self._response_started
        super().handle_reply(message)
        if starts:
            self.registerProducer(self.pace, True)

    def finish(self) -> None:
        """End the response. First read the rest of the body, which would otherwise be taken for the next request."""
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
    """A WebSocket with flow control. Its frames are counted until the application has handled them."""

    address: str | None = None
    muted: bool
    _encoder = FrameEncoder()  # shared: without compression it has no state

    def connectionMade(self) -> None:  # noqa: N802  # Twisted's name, as below
        self.pace = Pace()
        self._unfinished = self._fragments = 0
        self._keepalive = Keepalive()
        self.transport.bufferSize = READ_BYTES
        self.transport.unregisterProducer()  # the producer of the HTTP connection
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
        self._keepalive.note_received()
        super().dataReceived(data)

    def onOpen(self) -> None:  # noqa: N802
        super().onOpen()
        if (agreed := self._perMessageCompress) is not None:
            keeps_context = not agreed.server_no_context_takeover
            self._encoder = FrameEncoder(agreed.server_max_window_bits, keeps_context=keeps_context)

    def serverSend(self, content: Any, binary: bool = False) -> None:  # noqa: N802
        if not isinstance(content, str) or self.state != self.STATE_OPEN:
            super().serverSend(content, binary)
            return
        self._keepalive.note_sent(len(content))
        self.sendData(self._encoder.encode(content))

    def send_now(self, text: str) -> bool:
        """Send a text and return True. Return False if the connection is full or not open."""
        if self.state != self.STATE_OPEN or self.muted or not self.pace.is_open:
            return False
        self.serverSend(text)
        return True

    def _sendAutoPing(self) -> None:  # noqa: N802
        """Send a ping, unless the last one is unanswered.

        Autobahn accepts a pong only for the last ping, and forgets the timer of an earlier one without stopping it.
        """
        self._encoder.rest()
        if self.autoPingPending is None:
            self.autoPingTimeout = self._keepalive.note_ping()
            super()._sendAutoPing()

    def onAutoPong(self, *details: Any) -> None:  # noqa: N802
        self._keepalive.note_pong()

    def onAutoPingTimeout(self) -> None:  # noqa: N802
        """Close, unless the peer is sending a frame. How slowly it may send is limited elsewhere."""
        if self._keepalive.is_alive():
            timer = self.factory._batched_timer
            self.autoPingTimeoutCall = timer.call_later(PONG_SECONDS, self.onAutoPingTimeout)
        else:
            super().onAutoPingTimeout()

    def onFrameData(self, payload: bytes) -> bool | None:  # noqa: N802
        """Handle data of a frame. Data that no one reads is not decompressed."""
        if self.current_frame.opcode < FIRST_CONTROL and (self.muted or self.state != self.STATE_OPEN):
            return None
        taken: bool | None = super().onFrameData(payload)
        return taken

    def onMessageFrameBegin(self, length: int) -> None:  # noqa: N802
        super().onMessageFrameBegin(length)
        self._fragments += 1
        if self._fragments > MAX_FRAGMENTS and not self.muted:
            self.end(TOO_LARGE)

    def onMessageFrameData(self, payload: bytes) -> None:  # noqa: N802
        if self.muted:  # the socket is closing
            return
        super().onMessageFrameData(payload)
        self._unfinished += len(payload)
        self.count()

    def onMessage(self, payload: bytes, isBinary: bool) -> None:  # noqa: N802, N803
        self._unfinished = self._fragments = 0
        super().onMessage(payload, isBinary)
        self.count()

    def count(self) -> None:
        held = self.application_queue.held if hasattr(self, "application_queue") else 0
        self.factory.server_class.bounds.frames.update(self, unfinished=self._unfinished, whole=held)

    def give_up(self, code: int) -> None:
        self.end(code)
        self._unfinished = 0
        self.transport.bufferSize = DROPPED_BYTES
        self.transport.resumeProducing()

    def end(self, code: int) -> None:
        """Close from the server's side, and notify the application."""
        if not self.muted and hasattr(self, "application_queue"):
            self.application_queue.put_nowait({"type": "websocket.disconnect", "code": code})
        self.muted = True
        if self.state == self.STATE_OPEN:
            self.serverClose(code)

    def serverClose(self, code: int | None = None) -> None:  # noqa: N802
        """Close with a code. Autobahn's own method refuses codes for servers, such as 1012."""
        self.sendCloseFrame(code=1000 if code is None else code)


def accept_compression(offers: Sequence[PerMessageDeflateOffer]) -> PerMessageDeflateOfferAccept:
    """Accept a client's first offer. Clients keep no context, so that an idle socket has none."""
    return PerMessageDeflateOfferAccept(offers[0], request_no_context_takeover=True)


class RefusedConnection(Protocol):
    """A connection that exceeds the limits."""

    transport: Any

    def connectionMade(self) -> None:  # noqa: N802  # Twisted's name
        self.transport.write(response_bytes(429))
        self.transport.loseConnection()
