"""How coroutines reach the synchronous services: a pool of threads that own their database connections."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import close_old_connections, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from chat.sqlite.base import DatabaseWrapper as SqliteWrapper

P = ParamSpec("P")
T = TypeVar("T")


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
