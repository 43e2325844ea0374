"""The SQL statements of other threads, on connections that are opened during a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created


@contextmanager
def watched_statements() -> Iterator[list[str]]:
    """Yield a list that collects the SQL of all connections that are opened from now on."""
    seen: list[str] = []

    def note(execute: Callable[..., object], sql: str, *args: Any) -> object:
        seen.append(sql)
        return execute(sql, *args)

    def opened(connection: BaseDatabaseWrapper, **_: object) -> None:
        connection.execute_wrappers.append(note)

    connection_created.connect(opened)
    try:
        yield seen
    finally:
        connection_created.disconnect(opened)


def counted(statements: list[str], beginning: str) -> int:
    return sum(statement.startswith(beginning) for statement in statements)
