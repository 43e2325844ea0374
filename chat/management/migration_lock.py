"""Let several servers on one PostgreSQL database start one after another."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import connection

from chat.db import without_time_limits

logger = logging.getLogger(__name__)

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
            if not _ask("SELECT pg_advisory_unlock(%s)"):
                # Only log it, because the block has ended, and the lock is no longer needed.
                logger.error(
                    "The lock for migrations could not be released, so that other servers may wait for it. "
                    "DATABASE_URL seems to lead to a pooler in transaction mode. It must lead to PostgreSQL itself, or "
                    "to a pooler in session mode."
                )


def _ask(sql: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(sql, [LOCK])
        (answer,) = cursor.fetchone()
        return bool(answer)
