"""How coroutines reach the synchronous services: a pool of threads that own their database connections."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, close_old_connections, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from chat.sqlite.base import DatabaseWrapper as SqliteWrapper

logger = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")

# Seconds between two tries while the database is away.
RETRY_DELAY = 0.2


class Threads:
    """Some threads for database work. Channels' own helper has one thread for everything: one slow query stalls all.

    `durable` off is for work that would be done again after a power cut: it need not wait for the disk (SQLite).
    `close` ends them and closes their connections, which the threads themselves cannot do any more.
    """

    def __init__(self, count: int, name: str, *, durable: bool = True) -> None:
        self._durable = durable
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._local = threading.local()
        self._opened: list[BaseDatabaseWrapper] = []

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: self._call(function, *args, **kwargs))

    async def insist(self, function: Callable[..., T], *args: Any, unless: Callable[[], bool] = lambda: False) -> T:
        """Run it again and again while the database is away; once `unless` holds, what it raises is raised."""
        while True:
            try:
                return await self.run(function, *args)
            except (OperationalError, InterfaceError) as error:
                logger.warning("The database is not there, trying again: %s", error)
                if unless():
                    raise
                await asyncio.sleep(RETRY_DELAY)

    def _call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if not getattr(self._local, "known", False):
            self._local.known = True
            self._opened.extend(map(self._prepared, connections.all()))
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    def _prepared(self, connection: BaseDatabaseWrapper) -> BaseDatabaseWrapper:
        if isinstance(connection, SqliteWrapper):
            connection.waits_for_disk = self._durable
        return connection

    async def close(self) -> None:
        """Wait for what runs, then end."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._pool.shutdown(wait=True)
        for connection in self._opened:
            connection.inc_thread_sharing()
            connection.close()
        self._opened.clear()
