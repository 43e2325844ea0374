"""Daphne in `manage.py serve` and `manage.py runserver`: its start, limited connections, and a clean shutdown."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from socket import socket
from typing import Any

from daphne.http_protocol import HTTPFactory
from daphne.server import Server, twisted_loop
from daphne.ws_protocol import WebSocketFactory
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol

from chat.servers.daphne_connections import (
    Channel,
    RefusedConnection,
    Request,
    SocketProtocol,
    accept_compression,
    reactor,
)
from chat.servers.daphne_flow import InputQueue, Message
from chat.servers.limits import CLOSE_SECONDS, PING_SECONDS, STALL_SECONDS, limits
from config.asgi import application, log_failed_start

# Seconds in which applications may end after the server was asked to stop.
STOP_SECONDS = 5.0
RESTARTING = 1012


class ChannelFactory(HTTPFactory):
    """Accepts connections up to the limits."""

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

    # Server.run creates both factories. These setters replace them by Parley's.

    @property
    def http_factory(self) -> ChannelFactory:
        return self._http_factory

    @http_factory.setter
    def http_factory(self, factory: HTTPFactory) -> None:
        self._http_factory = ChannelFactory(self)
        if self.bounds.idle_seconds is not None:
            self._http_factory.timeOut = self.bounds.idle_seconds

    @property
    def ws_factory(self) -> WebSocketFactory:
        return self._ws_factory

    @ws_factory.setter
    def ws_factory(self, factory: WebSocketFactory) -> None:
        factory.protocol = SocketProtocol
        # Otherwise Autobahn would take any frame for an answer to the ping, and then not recognize the pong.
        factory.setProtocolOptions(
            failByDrop=False,
            closeHandshakeTimeout=CLOSE_SECONDS,
            autoPingRestartOnAnyTraffic=False,
            perMessageCompressionAccept=accept_compression,
        )
        self._ws_factory = factory

    def create_application(self, protocol: Any, scope: Message) -> InputQueue | None:
        is_socket = isinstance(protocol, SocketProtocol)
        queue = InputQueue(protocol.transport, protocol.count if is_socket else lambda: None)
        if is_socket:
            scope["extensions"] = {"parley.frames": {"send_now": protocol.send_now}}
        scope.setdefault("asgi", {"version": "3.0"})
        if protocol in self.connections:
            running: Coroutine[Any, Any, None] = self.application(
                scope, queue.get, partial(self.handle_reply, protocol)
            )
            self.connections[protocol]["application_instance"] = asyncio.ensure_future(running)
        return queue

    async def handle_reply(self, protocol: Any, message: Message) -> None:
        """Pass a message to the connection, then wait until the connection can take more."""
        await super().handle_reply(protocol, message)
        if message["type"] in ("websocket.send", "http.response.body"):
            await self._wait_until_drained(protocol)

    async def _wait_until_drained(self, protocol: Any) -> None:
        """Wait until the connection can take more. Abort it if the peer takes nothing for STALL_SECONDS."""
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
        """End connections with a close code before the reactor cuts them."""
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
    """Return the number of bytes that a Twisted transport has not sent yet."""
    return len(transport.dataBuffer) - int(transport.offset) + int(transport._tempDataLen)


def stop_at_sigint() -> None:
    """Make SIGINT end the process even if it was ignored, as for a script's background jobs.

    Twisted would leave it ignored.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def serve(listening: socket, ready: Callable[[], Awaitable[None]]) -> bool:
    """Serve until SIGINT or SIGTERM. Await `ready` once the runner has started. Return whether it has started."""
    stop_at_sigint()
    server = BoundedServer(application, endpoints=["the socket that listens already"])
    server.endpoints.clear()  # Daphne requires an endpoint, and would open it itself
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
    """End the remaining tasks and threads of the loop, as asyncio.run would."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
