"""Daphne inside Parley's own command: a socket that listens from the start, the runner beside it, a clean end."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable

from daphne.server import Server, twisted_loop  # type: ignore[import-untyped]  # it ships no types
from django.conf import settings
from twisted.internet import reactor

from config.asgi import Application

logger = logging.getLogger("chat.server")
BACKLOG = 1024
# A run that does not let go in time is taken over when its lease ends, as after a crash.
STOP_SECONDS = 5.0


def listen(host: str, port: int) -> socket.socket:
    """Take the address; who connects from now on waits until the server serves. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _name, address = found[0]
    listening = socket.socket(family, kind, protocol)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(address)
    listening.listen(BACKLOG)
    listening.setblocking(False)
    return listening


def serve(application: Application, listening: socket.socket, ready: Callable[[], Awaitable[None]]) -> bool:
    """Serve until SIGINT or SIGTERM; await `ready` once the runner runs. Return whether it did run."""
    server = Server(
        application,
        endpoints=["the socket that listens already"],
        # A message may be as long as a page's form: MAX_MESSAGE_CHARS decides, and says so kindly.
        websocket_max_message_size=settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
        websocket_max_frame_size=settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
        server_name="Parley",
    )
    server.endpoints.clear()  # Daphne wants one to be named, and would open it itself
    server.ready_callable = lambda: _adopt(listening, server)
    starting = twisted_loop.create_task(_start(application, server, ready))
    server.run()
    twisted_loop.run_until_complete(_finish(application))
    return not starting.cancelled() and starting.result()


def _adopt(listening: socket.socket, server: Server) -> None:
    with listening:
        reactor.adoptStreamPort(listening.fileno(), listening.family, server.http_factory)


async def _start(application: Application, server: Server, ready: Callable[[], Awaitable[None]]) -> bool:
    try:
        await application.start()
        await ready()
    except Exception:
        logger.exception("Parley did not start")
        server.stop()
        return False
    return True


async def _finish(application: Application) -> None:
    """Let go of the runs, then end what is left on the loop, as asyncio.run would."""
    try:
        await asyncio.wait_for(application.stop(), STOP_SECONDS)
    except TimeoutError:
        logger.warning("The runs did not stop in time; they go on after the next start")
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
