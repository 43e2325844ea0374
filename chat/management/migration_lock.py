"""Let several servers on one PostgreSQL database start one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import connection

from chat.db import without_time_limits

# An arbitrary number for PostgreSQL's advisory lock.
LOCK = 7_275_393


@contextmanager
def one_at_a_time(on_wait: Callable[[], None]) -> Iterator[None]:
    """Wait until no other server is inside this block. If one is, call `on_wait` first. Raise DatabaseError.

    This applies to the servers of one PostgreSQL database. SQLite has only one server.
    """
    if connection.vendor != "postgresql":
        yield
        return
    with without_time_limits():
        if not _ask("SELECT pg_try_advisory_lock(%s)"):
            on_wait()
            _ask("SELECT pg_advisory_lock(%s)")
        try:
            yield
        finally:
            _ask("SELECT pg_advisory_unlock(%s)")


def _ask(sql: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(sql, [LOCK])
        (answer,) = cursor.fetchone()
        return bool(answer)
