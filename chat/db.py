"""Run synchronous services from coroutines: pools of threads, each thread with its own database connection.

Also detect an unavailable database, and change time limits (PostgreSQL).
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    InterfaceError,
    OperationalError,
    close_old_connections,
    connections,
)
from django.db.backends.base.base import BaseDatabaseWrapper

from chat.log_context import log_ids, logging_ids
from chat.overrides.sqlite.base import DatabaseWrapper as SqliteWrapper

if TYPE_CHECKING:
    from chat.overrides.postgres.base import DatabaseWrapper as PostgresWrapper

logger = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")

# Seconds between two tries while the database is unavailable: the first delay, and the longest.
FIRST_DELAY = 0.1
MAX_DELAY = 2.0
# States of PostgreSQL that psycopg does not report as operational errors. In the first, the server is a standby, or a
# demoted primary, and accepts no writes. In the second, it ended a transaction because its client was silent.
AWAY = ("25006", "25P03")
LOCK_TIMEOUT = "55P03"
# The milliseconds for which a migration waits for a lock. All later statements on the table wait behind it, so it gives
# up soon and is tried again (chat/management/lock_retries.py).
MIGRATION_LOCK_TIMEOUT = 1000
# The beginning of the error of SQLite's driver for a text that another program has stored, which repeating cannot read.
# The error quotes the text.
NOT_UTF_8 = "Could not decode to UTF-8"


class Threads:
    """A pool of threads for database work. Channels' own helper has a single thread, which one slow query would block.

    Each thread keeps its own connection. On PostgreSQL, requests share a pool of other connections, so that any number
    of requests leaves these available. `limits` are the time limits that differ from those of requests.

    `durable` is False for work that would be repeated after a power cut, so that it need not wait for the disk
    (SQLite). `close` ends the threads and closes their connections, because the threads can no longer do so themselves.
    """

    def __init__(self, count: int, name: str, *, durable: bool = True, limits: Mapping[str, int] | None = None) -> None:
        self._durable = durable
        self._limits = limits or {}
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._local = threading.local()
        self._opened: list[BaseDatabaseWrapper] = []

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop, ids = asyncio.get_running_loop(), log_ids()

        def call() -> T:
            with logging_ids(ids):
                if not getattr(self._local, "known", False):
                    self._local.known = True
                    self._opened.append(own_connection(durable=self._durable, limits=self._limits))
                close_old_connections()
                try:
                    return function(*args, **kwargs)
                finally:
                    close_old_connections()

        return await loop.run_in_executor(self._pool, call)

    async def run_with_retry(
        self, function: Callable[..., T], *args: Any, unless: Callable[[], bool] = lambda: False
    ) -> T:
        """Call the function, and again while the database is unavailable. If `unless` returns True, raise the error."""
        delay = FIRST_DELAY
        while True:
            try:
                return await self.run(function, *args)
            except (DatabaseError, InterfaceError) as error:
                if not is_unavailable(error) or unless():
                    raise
                logger.warning("The database is not available; retrying: %s", error)
            await asyncio.sleep(jittered(delay))
            delay = min(MAX_DELAY, delay * 2)

    async def cancel(self) -> None:
        """Cancel the statements that PostgreSQL executes for the threads."""
        await asyncio.to_thread(self._cancel)

    def _cancel(self) -> None:
        for each in self._opened:
            if (postgres := _as_postgres(each)) is not None and postgres.connection is not None:
                with suppress(DatabaseError, InterfaceError, OSError):
                    postgres.connection.cancel()

    async def close(self) -> None:
        """Wait for running work, then stop the threads."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._pool.shutdown(wait=True)
        for each in self._opened:
            each.inc_thread_sharing()
            each.close()
        self._opened.clear()


def own_connection(*, durable: bool = True, limits: Mapping[str, int]) -> BaseDatabaseWrapper:
    """Give the calling thread its own connection, which is outside of the pool and not yet opened."""
    shared = connections[DEFAULT_DB_ALIAS]
    if isinstance(shared, SqliteWrapper):
        shared.waits_for_disk = durable
        return shared
    postgres = _as_postgres(shared)
    if postgres is None:
        return shared
    options = {name: value for name, value in postgres.settings_dict["OPTIONS"].items() if name != "pool"}
    options["limits"] = {**postgres.limits, **limits}
    own = {**postgres.settings_dict, "CONN_MAX_AGE": None, "OPTIONS": options}
    connections[DEFAULT_DB_ALIAS] = type(postgres)(own, DEFAULT_DB_ALIAS)
    return connections[DEFAULT_DB_ALIAS]


@contextmanager
def without_statement_timeout() -> Iterator[None]:
    """Let the statements of the calling thread's connection take any time. The limit for locks stays."""
    if (postgres := _as_postgres(connections[DEFAULT_DB_ALIAS])) is not None:
        postgres.set_limits({"statement_timeout": 0})
    try:
        yield
    finally:
        restore_time_limits(DEFAULT_DB_ALIAS)


def prepare_for_migrations(using: str, **signal: object) -> None:
    """Remove the time limits of the calling thread's connection, except that for locks, which becomes shorter.

    A receiver of Django's `pre_migrate`.
    """
    if (postgres := _as_postgres(connections[using])) is not None:
        postgres.set_limits({**dict.fromkeys(postgres.limits, 0), "lock_timeout": MIGRATION_LOCK_TIMEOUT})


def restore_time_limits(using: str, **signal: object) -> None:
    """Restore the time limits of the settings. Also a receiver of Django's `post_migrate`."""
    postgres = _as_postgres(connections[using])
    if postgres is not None and postgres.is_usable():
        postgres.set_limits(postgres.limits)


def _as_postgres(wrapper: BaseDatabaseWrapper) -> PostgresWrapper | None:
    """Return the connection if it is to PostgreSQL, otherwise None. Only then psycopg is imported: it takes 9 MiB."""
    if wrapper.vendor != "postgresql":
        return None
    from chat.overrides.postgres.base import DatabaseWrapper

    return wrapper if isinstance(wrapper, DatabaseWrapper) else None


def is_unavailable(error: BaseException) -> bool:
    """Return whether a database error is temporary: the database is unavailable, too busy, or failing over."""
    if is_unreadable(error):
        return False
    return isinstance(error, OperationalError | InterfaceError) or sqlstate(error) in AWAY


def is_unreadable(error: BaseException) -> bool:
    """Return whether SQLite has a text that is not UTF-8, which another program has written."""
    return str(error).startswith(NOT_UTF_8)


def sqlstate(error: BaseException) -> str:
    """Return PostgreSQL's code of an error, or ""."""
    return getattr(error.__cause__, "sqlstate", None) or ""


def jittered(delay: float) -> float:
    """Return a delay with jitter, so that clients do not reconnect at the same time."""
    return delay * random.uniform(0.5, 1.0)  # noqa: S311  # no secret
