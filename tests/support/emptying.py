"""The cleanup of the test database after a test that commits. It deletes all rows except those of migrations."""

from __future__ import annotations

from collections.abc import Callable

from django.core.management.color import no_style
from django.db import connection
from django.test import TransactionTestCase

# Tables with rows created by migrations. A flush would recreate these rows after each test, which takes longer than
# most tests, and few tests change them.
MADE_BY_MIGRATIONS = ("django_content_type", "auth_permission", "auth_group", "auth_group_permissions")
Rows = list[list[tuple[object, ...]]]


class Emptying:
    """A flush of the database that only truncates tables while the rows created by migrations are unchanged."""

    def __init__(self, flush: Callable[[TransactionTestCase], None]) -> None:
        self._flush = flush
        names = connection.introspection.django_table_names(only_existing=True, include_views=False)
        self._tables = [name for name in names if name not in MADE_BY_MIGRATIONS]
        self._made = _made()

    def __call__(self, test: TransactionTestCase) -> None:
        if _made() != self._made:
            self._flush(test)
            self._made = _made()
        elif filled := _filled(self._tables):
            operations = connection.ops
            # PostgreSQL does not truncate a table to which another table refers, even if that is empty.
            cascade = connection.vendor == "postgresql"
            operations.execute_sql_flush(operations.sql_flush(no_style(), filled, allow_cascade=cascade))


def _made() -> Rows:
    with connection.cursor() as cursor:
        made: Rows = []
        for table in MADE_BY_MIGRATIONS:
            cursor.execute(f"SELECT * FROM {table} ORDER BY id")  # noqa: S608  # our own
            made.append(cursor.fetchall())
        return made


def _filled(tables: list[str]) -> list[str]:
    quoted = connection.ops.quote_name
    asked = (f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {quoted(name)})" for name in tables)  # noqa: S608  # our own
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(asked))
        return [name for (name,) in cursor.fetchall()]
