"""Create indexes of large tables while servers write to them, which PostgreSQL only does outside of a transaction.

Django's AddIndexConcurrently needs psycopg, and does not work on SQLite.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


class AddIndexConcurrently(migrations.AddIndex):
    """Add an index. The migration must not be atomic, and may be repeated. On SQLite, writers wait."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        if schema_editor.connection.vendor != "postgresql":
            with schema_editor.connection.cursor() as cursor:
                found = schema_editor.connection.introspection.get_constraints(cursor, model._meta.db_table)
            if self.index.name not in found:
                super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            create_concurrently(schema_editor, self.index.name, str(self.index.create_sql(model, schema_editor)))


def create_concurrently(schema_editor: BaseDatabaseSchemaEditor, name: str, statement: str) -> None:
    """Execute a CREATE INDEX statement concurrently, unless the index is there. For PostgreSQL only.

    If creating an index concurrently fails, PostgreSQL leaves it behind as invalid.
    """
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [name])
        found = cursor.fetchone()
    if found == (True,):
        return
    with _waiting_for_locks(schema_editor.connection):
        if found is not None:
            schema_editor.execute(f"DROP INDEX CONCURRENTLY {schema_editor.quote_name(name)}", None)
        schema_editor.execute(statement.replace("CREATE INDEX", "CREATE INDEX CONCURRENTLY", 1), None)


@contextmanager
def _waiting_for_locks(connection: Any) -> Iterator[None]:
    """Wait for the end of other transactions, however long it takes, because no one waits for this one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout')")
        (before,) = cursor.fetchone()
        cursor.execute("SET lock_timeout = 0")
        try:
            yield
        finally:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [before])
