"""`manage.py runserver`: Daphne with the runner and the reloader, for development."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from daphne.management.commands.runserver import Command as DaphneCommand
from daphne.server import twisted_loop
from django.utils.autoreload import file_changed

from chat.servers.daphne_server import BoundedServer, stop_at_sigint
from config.asgi import application

STOP_SECONDS = 5.0


class DevelopmentServer(BoundedServer):
    """A Daphne server that starts the runner before the first request."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "ready_callable": self._start})

    def _start(self) -> None:
        self._starting = asyncio.ensure_future(application.start_or_log(), loop=twisted_loop)


class Command(DaphneCommand):
    """Daphne's command, with the limits of Parley's servers."""

    server_cls = DevelopmentServer

    def run(self, **options: Any) -> None:
        stop_at_sigint()
        super().run(**options)

    def inner_run(self, *args: Any, **options: Any) -> None:
        file_changed.connect(_stop, dispatch_uid="parley")
        super().inner_run(*args, **options)


def _stop(file_path: Path, **details: Any) -> None:
    """Release the runs before the reloader replaces this process, because that kills the thread of the loop."""
    if file_path.suffix == ".py" and twisted_loop.is_running():
        asyncio.run_coroutine_threadsafe(application.stop(), twisted_loop).result(STOP_SECONDS)
