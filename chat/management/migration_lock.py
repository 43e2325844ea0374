"""Let several servers on one PostgreSQL database start one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import connection

# An arbitrary number for PostgreSQL's advisory lock.
LOCK = 7_275_393
# Seconds between two attempts to get the lock. A statement that waited for it would be a deadlock with a migration that
# creates an index concurrently, which waits for the end of all earlier statements.
PAUSE = 0.5


@contextmanager
def one_at_a_time(on_wait: Callable[[], None]) -> Iterator[None]:
    """Wait until no other server is inside this block. If one is, call `on_wait` first. Raise DatabaseError.

    This applies to the servers of one PostgreSQL database. SQLite has only one server.
    """
    if connection.vendor != "postgresql":
        yield
        return
    if not _ask("SELECT pg_try_advisory_lock(%s)"):
        on_wait()
        while not _ask("SELECT pg_try_advisory_lock(%s)"):
            time.sleep(PAUSE)
    try:
        yield
    finally:
        _ask("SELECT pg_advisory_unlock(%s)")


def _ask(sql: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(sql, [LOCK])
        (answer,) = cursor.fetchone()
        return bool(answer)
