"""Run synchronous services from coroutines: pools of threads, each thread with its own database connection.

Also: detect an unavailable database, and lift time limits (PostgreSQL).
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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

# Seconds between two tries while the database is away: the first, and the longest.
FIRST_DELAY = 0.1
LONGEST_DELAY = 2.0
# PostgreSQL's states that are not operational errors for psycopg: a standby, or a primary that has been demoted, takes
# no writes; a transaction was ended by the server because its client was silent.
AWAY = ("25006", "25P03")
LOCK_TIMEOUT = "55P03"


class Threads:
    """Some threads for database work. Channels' own helper has one thread for everything: one slow query stalls all.

    Each thread keeps a connection to itself. On PostgreSQL requests share a pool of others, so that any number of them
    leaves these threads theirs; `limits` are their time limits where they differ from those of a request.
    `durable` off is for work that would be done again after a power cut: it need not wait for the disk (SQLite).
    `close` ends them and closes their connections, which the threads themselves cannot do any more.
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
        """Retry while the database is unavailable; once `unless` returns true, errors are raised."""
        delay = FIRST_DELAY
        while True:
            try:
                return await self.run(function, *args)
            except (DatabaseError, InterfaceError) as error:
                if not is_away(error) or unless():
                    raise
                logger.warning("The database is not available, trying again: %s", error)
            await asyncio.sleep(jittered(delay))
            delay = min(LONGEST_DELAY, delay * 2)

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
    """Give the calling thread its own connection, outside of the pool; it is not opened yet."""
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
def without_time_limits(using: str = DEFAULT_DB_ALIAS) -> Iterator[None]:
    """Lift the connection's time limits, for migrations and their lock."""
    lift_time_limits(using)
    try:
        yield
    finally:
        restore_time_limits(using)


def lift_time_limits(using: str, **signal: object) -> None:
    """Remove the time limits of the calling thread's connection; also a receiver of Django's `pre_migrate`."""
    if (postgres := _as_postgres(connections[using])) is not None:
        postgres.set_limits(dict.fromkeys(postgres.limits, 0))


def restore_time_limits(using: str, **signal: object) -> None:
    """Set the time limits again that the settings give; also a receiver of Django's `post_migrate`."""
    if (postgres := _as_postgres(connections[using])) is not None:
        postgres.set_limits(postgres.limits)


def _as_postgres(wrapper: BaseDatabaseWrapper) -> PostgresWrapper | None:
    """Return the connection if it is one to PostgreSQL, else None. Only then is psycopg imported: it takes 9 MiB."""
    if wrapper.vendor != "postgresql":
        return None
    from chat.overrides.postgres.base import DatabaseWrapper

    return wrapper if isinstance(wrapper, DatabaseWrapper) else None


def is_away(error: BaseException) -> bool:
    """Return whether a database error is temporary: the database is unavailable, too busy, or failing over."""
    return isinstance(error, OperationalError | InterfaceError) or sqlstate(error) in AWAY


def sqlstate(error: BaseException) -> str:
    """Return PostgreSQL's code of an error, "" where there is none."""
    return getattr(error.__cause__, "sqlstate", None) or ""


def jittered(delay: float) -> float:
    """Add jitter to a delay, so that clients do not reconnect together."""
    return delay * random.uniform(0.5, 1.0)  # noqa: S311  # no secret
