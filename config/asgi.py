"""The ASGI application: pages, sockets, and the runner, which starts and stops with the server."""

from __future__ import annotations

import asyncio
import logging
import os
from http import HTTPStatus

from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.db import connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
pages = get_asgi_application()

from chat import schema  # noqa: E402  # the apps are loaded by the line above
from chat.asgi.bodies import BodyLimits  # noqa: E402  # likewise
from chat.asgi.encrypted_tokens import EncryptedTokens  # noqa: E402  # likewise
from chat.asgi.health import Health  # noqa: E402  # likewise
from chat.asgi.log_ids import ids_of  # noqa: E402  # likewise
from chat.asgi.mcp import McpEndpoint  # noqa: E402  # likewise
from chat.asgi.monitoring import Monitor, MonitoringError  # noqa: E402  # likewise
from chat.asgi.refusals import Receive, Scope, Send, refuse_connection, restarting  # noqa: E402  # likewise
from chat.asgi.socket_credentials import AuthenticatedSockets  # noqa: E402  # likewise
from chat.asgi.unavailable import UnavailablePages  # noqa: E402  # likewise
from chat.assets import static_files  # noqa: E402  # the apps are loaded by the line above
from chat.disconnects import watch_disconnect  # noqa: E402  # likewise
from chat.log_context import logging_ids  # noqa: E402  # likewise
from chat.rendering.markdown import highlight  # noqa: E402  # likewise
from chat.routing import websocket_urlpatterns  # noqa: E402  # likewise
from chat.runner import runtime  # noqa: E402  # likewise
from config import service_manager  # noqa: E402  # likewise
from config.data_folder import protect_data  # noqa: E402  # likewise
from config.descriptors import raise_descriptor_limit  # noqa: E402  # likewise
from config.shutdown import on_shutdown_signal  # noqa: E402  # likewise
from config.warm_up import warm_up  # noqa: E402  # likewise

logger = logging.getLogger("chat.server")
# Sessions that are not released within these seconds are taken over by other workers, as after a crash.
STOP_SECONDS = 5.0


class Application(ProtocolTypeRouter):
    """The router of connections.

    A server with lifespan events (uvicorn) starts and stops the runner by them. `manage.py serve` with Daphne calls
    `start` and `stop` itself. Any other server starts the runner with its first connection.
    """

    _started: asyncio.Future[None] | None = None
    _starting: asyncio.Future[None] | None = None
    _health: Health | None = None
    _monitor: Monitor | None = None
    _is_over = False

    @property
    def health(self) -> Health:
        if self._health is None:
            self._health = Health()
        return self._health

    async def start(self) -> None:
        """Start the background work. Concurrent and later calls wait for the same start."""
        if self._started is None:
            self._started = asyncio.ensure_future(self._start())
        try:
            await asyncio.shield(self._started)
        except Exception:
            self._started = None  # the next call tries again
            raise
        if self.health.state == "starting":
            self.health.state = "running"

    async def _start(self) -> None:
        monitor = Monitor(self.health)
        if settings.MONITORING_PORT:
            await monitor.start(settings.MONITORING_HOST, settings.MONITORING_PORT)
        try:
            await _start()
        except BaseException:
            await monitor.stop()
            raise
        self._monitor = monitor

    def end_streams(self) -> None:
        """Report that the process is about to stop, and end the responses that have no end."""
        self.health.state = "stopping"
        service_manager.stopping()
        runtime.end_streams()

    async def stop(self) -> None:
        """Stop the background work permanently, and release the sessions for other processes."""
        if self._started is None or self._is_over:
            return
        self._is_over = True
        await runtime.drain()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await mcp.stop()
                await runtime.stop()
                await self.health.close()
                if self._monitor is not None:
                    await self._monitor.stop()
        except TimeoutError:
            logger.warning("Running turns did not stop in time; they continue after the next start")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        with logging_ids(ids_of(scope)):
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.health.is_probe(scope):
            # A probe may be the first connection of a server without lifespan events. It does not wait for the start.
            if self._started is None and self.health.state == "starting":
                self._starting = asyncio.ensure_future(self.start_or_log())
            await self.health.answer(scope, send)
        elif self._is_over:
            await refuse_connection(scope, receive, send, HTTPStatus.SERVICE_UNAVAILABLE, restarting)
        else:
            await self.start()
            if scope["type"] == "http":
                receive = watch_disconnect(scope, receive)
            await super().__call__(scope, receive, send)

    async def start_or_log(self) -> None:
        """Start, and log an error. The next request then tries again."""
        try:
            await self.start()
        except Exception as error:
            log_failed_start(error)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.start()
        except Exception as error:
            log_failed_start(error)
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        with on_shutdown_signal(self.end_streams):
            await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})


def log_failed_start(error: BaseException) -> None:
    """Log an error that an operator can solve as one line, and other errors with their traceback."""
    if isinstance(error, schema.WrongSchemaError | MonitoringError):
        logger.error("Parley cannot start: %s", error)
    else:
        logger.error("Parley did not start", exc_info=error)


async def _start() -> None:
    loop = asyncio.get_running_loop()
    raise_descriptor_limit()
    await loop.run_in_executor(None, _prepare)
    await runtime.start()
    loop.run_in_executor(None, _settle)


def _prepare() -> None:
    for problem in protect_data():
        logger.warning("Cannot restrict access to data: other accounts of this machine may read %s", problem)
    try:
        schema.require_current()
    finally:
        connections.close_all()
    static_files.prepare()


def _settle() -> None:
    highlight.load_common()
    warm_up()


async def is_database_silent() -> bool:
    return await application.health.is_database_silent()


mcp = McpEndpoint(pages)
application = Application(
    {
        "http": EncryptedTokens(UnavailablePages(BodyLimits(mcp), is_database_silent)),
        "websocket": EncryptedTokens(AuthenticatedSockets(URLRouter(websocket_urlpatterns))),
    }
)
