"""The ASGI application: pages, sockets, and the runner that lives as long as the server does."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
pages = get_asgi_application()

from chat import static_files  # noqa: E402  # the apps are loaded by the line above
from chat.agents_setup import registry  # noqa: E402  # likewise
from chat.routing import websocket_urlpatterns  # noqa: E402  # likewise
from chat.running import embedded  # noqa: E402  # likewise
from chat.unavailable import UnavailableSockets  # noqa: E402  # likewise
from config.stopping import told_to_stop  # noqa: E402  # likewise

logger = logging.getLogger("chat.server")


class Application(ProtocolTypeRouter):
    """The router of connections.

    A server that speaks lifespan (uvicorn) starts and stops the runner by it; `manage.py serve` calls `start` and
    `stop` itself; any other server starts the runner with its first connection.
    """

    _started: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Start what runs in the background: once, however many ask for it."""
        if self._started is None:
            self._started = asyncio.ensure_future(_start())
        try:
            await asyncio.shield(self._started)
        except Exception:
            self._started = None  # the next one to ask tries again
            raise

    async def stop(self) -> None:
        """Stop it; the sessions that it ran are free for others."""
        if self._started is not None:
            self._started = None
            await embedded.stop()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self.start()
            await super().__call__(scope, receive, send)

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        try:
            await self.start()
        except Exception as error:
            logger.exception("The runner did not start")
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        with told_to_stop(embedded.end_streams):
            await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})


async def _start() -> None:
    await asyncio.get_running_loop().run_in_executor(None, static_files.prepare)
    await embedded.start()
    asyncio.get_running_loop().run_in_executor(None, _settle)


def _settle() -> None:
    """Load what the first answer will need (an SDK takes a second), then calm the garbage collector.

    What is loaded by now stays for good: the collector need not look at it again, and what streams through is freed by
    its reference counts. A full collection stops every stream for its while, so it comes seldom.
    """
    for name in {registry().preset().provider, *(model.provider for model in registry().known_models())}:
        registry().provider(name)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


application = Application(
    {
        "http": pages,
        "websocket": AllowedHostsOriginValidator(
            UnavailableSockets(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)))
        ),
    }
)
