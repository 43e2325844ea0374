"""Migrations beside transactions that use the same tables, such as a backup."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import StringIO

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.commands import migrate
from django.core.management.sql import emit_pre_migrate_signal
from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, transaction

from chat import schema
from chat.db import restore_time_limits
from chat.management import lock_retries
from chat.management.lock_retries import WAITING
from chat.management.updating import update_database
from tests.support.database import address

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


class Backup:
    """A transaction that has read a table, like that of pg_dump. It ends when a migration has tried several times."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self.pauses: list[float] = []
        connection.execute("SELECT FROM chat_session")

    def pause(self, seconds: float) -> None:
        """Stand for the pause of a migration. Another statement that uses the table does not wait in the meantime."""
        with psycopg.connect(address()) as other:
            other.execute("SET lock_timeout = 1")
            other.execute("SELECT FROM chat_session")
        self.pauses.append(seconds)
        if len(self.pauses) == 6:
            self._connection.rollback()


@pytest.fixture
def backup(monkeypatch: pytest.MonkeyPatch) -> Iterator[Backup]:
    """A backup that runs beside a migration that needs an exclusive lock."""

    def apply(_command: object, *_args: object, **_options: object) -> None:
        emit_pre_migrate_signal(verbosity=0, interactive=False, db=DEFAULT_DB_ALIAS)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE chat_session IN ACCESS EXCLUSIVE MODE")

    monkeypatch.setattr(migrate.Command, "handle", apply)
    monkeypatch.setattr("chat.db.MIGRATION_LOCK_TIMEOUT", 20)
    with psycopg.connect(address()) as other:
        backup = Backup(other)
        monkeypatch.setattr("chat.management.lock_retries.sleep", backup.pause)
        yield backup
    restore_time_limits(DEFAULT_DB_ALIAS)  # the pool lends the connection to later tests


def command(report: Callable[[str], None]) -> None:
    out = StringIO()
    call_command("migrate", stdout=out)
    report(out.getvalue().strip())


def start(report: Callable[[str], None]) -> None:
    update_database(report)


@pytest.mark.parametrize("update", [command, start])
def test_migration_gives_way_until_a_backup_has_ended(
    backup: Backup, update: Callable[[Callable[[str], None]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-06: all statements on a table wait behind a migration that waits for it, so the migration gives up soon, and
    tries again later."""
    known = schema.known_migrations()
    monkeypatch.setattr(schema, "known_migrations", lambda: known | {("chat", "9999_next")})
    lines: list[str] = []
    update(lines.append)
    assert lines[-1] == WAITING
    assert backup.pauses == [1, 2, 4, 8, 16, 30]


def test_other_errors_of_a_migration_are_raised() -> None:
    """Only locks are waited for: a statement that fails would fail again."""

    def fail() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 1; SELECT pg_sleep(1)")

    with pytest.raises(OperationalError, match="statement timeout"):
        lock_retries.repeat_while_locked(fail, pytest.fail)
    restore_time_limits(DEFAULT_DB_ALIAS)
