"""Indexes that migrations create while servers write to the table."""

from __future__ import annotations

import psycopg
import pytest
from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, models
from django.db.migrations.state import ProjectState

from chat.db import restore_time_limits
from chat.models import Workspace
from chat.overrides.postgres.indexes import AddIndexConcurrently
from tests.support.database import address

pytestmark = pytest.mark.django_db(transaction=True)
ADD = AddIndexConcurrently("workspace", models.Index(fields=["name"], name="workspace_probe"))


def add() -> None:
    state = ProjectState.from_apps(apps)
    with connection.schema_editor(atomic=False) as editor:
        ADD.database_forwards("chat", editor, state, state)


def is_valid() -> bool | None:
    """Return whether the index can be used; None if it does not exist."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('workspace_probe')")
        found = cursor.fetchone()
    return found[0] if found else None


def limit(name: str, milliseconds: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config(%s, %s, false)", [name, str(milliseconds)])


@pytest.mark.both_databases
def test_index_is_created_once_by_a_migration_that_is_repeated() -> None:
    """OPS-06: such a migration is not atomic, so an interrupted one has created some of its indexes."""
    try:
        add()
        add()
        with connection.cursor() as cursor:
            assert "workspace_probe" in connection.introspection.get_constraints(cursor, "chat_workspace")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP INDEX IF EXISTS workspace_probe")


@pytest.mark.postgres
def test_index_is_created_beside_writers() -> None:
    """OPS-06: a transaction that has written to the table does not stop others, and a failed index is made again."""
    Workspace.objects.create(name="W")
    try:
        with psycopg.connect(address()) as other:
            other.execute("UPDATE chat_workspace SET name = 'V'")
            limit("statement_timeout", 300)
            with pytest.raises(OperationalError, match="statement timeout"):
                add()
            limit("statement_timeout", 0)
            assert is_valid() is False
        add()
        assert is_valid()
        add()  # by a migration that is repeated
        assert is_valid()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP INDEX IF EXISTS workspace_probe")
        restore_time_limits(DEFAULT_DB_ALIAS)  # the pool lends the connection to later tests
