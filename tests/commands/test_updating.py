"""A start updates the database: never one of a newer version, and never without a backup of the rows there are."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from pytest_django import Settings

from chat import schema
from chat.management import updating
from chat.management.updating import BackupError, back_up, update_database
from chat.models import User
from chat.schema import WrongSchemaError
from chat.services.people.staff import MANAGED, MANAGERS

pytestmark = pytest.mark.django_db


@pytest.fixture
def data(tmp_path: Path, settings: Settings) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


@pytest.fixture
def _older_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that lacks a migration; there is none to apply."""
    known = schema.known_migrations()
    monkeypatch.setattr(schema, "known_migrations", lambda: known | {("chat", "9999_next")})


def update() -> list[str]:
    """Update the database; return what was reported."""
    lines: list[str] = []
    update_database(lines.append)
    return lines


def test_database_of_a_newer_version_is_refused() -> None:
    """Older code would misread its rows, and write what the newer one cannot read."""
    MigrationRecorder(connection).record_applied("chat", "9999_next")

    with pytest.raises(WrongSchemaError, match=r"newer version of Parley \(chat.9999_next\)"):
        update()
    with pytest.raises(WrongSchemaError, match="newer version"):
        schema.require_current()


@pytest.mark.usefixtures("_older_database")
def test_database_of_another_branch_is_refused(data: Path) -> None:
    """It lacks a migration of this version and has one of its own: nothing is applied to it."""
    MigrationRecorder(connection).record_applied("chat", "9998_other")

    with pytest.raises(WrongSchemaError, match=r"newer version of Parley \(chat.9998_other\)"):
        update()
    assert list(data.iterdir()) == []


@pytest.mark.usefixtures("_older_database")
def test_server_that_does_not_migrate_asks_for_it() -> None:
    with pytest.raises(WrongSchemaError, match=r"lacks 1 migrations\. Run manage.py migrate first"):
        schema.require_current()


def test_known_migrations_are_those_of_django() -> None:
    """Their names are read from the folders; Django imports them all."""
    assert schema.known_migrations() == set(MigrationLoader(None).disk_migrations or ())


def test_group_that_a_broken_start_has_not_made_is_made_by_the_next(data: Path) -> None:
    """It was ended between its last migration and what follows."""
    Group.objects.filter(name=MANAGERS).delete()
    assert update() == []
    assert Group.objects.get(name=MANAGERS).permissions.count() == len(MANAGED)


def test_database_of_this_version_is_left_alone(data: Path) -> None:
    assert update() == []
    assert list(data.iterdir()) == []


@pytest.mark.postgres
@pytest.mark.usefixtures("_older_database")
def test_postgresql_is_the_operator_s_to_back_up(data: Path) -> None:
    """PostgreSQL: a copy would be of the whole server's data; the operator chooses when."""
    (line,) = update()

    assert "without a backup: see manage.py backup" in line
    assert list(data.iterdir()) == []


@pytest.fixture
def _rows(transactional_db: None) -> None:
    """Rows in a database that other connections see: a copy is made of what is committed."""
    User.objects.create_user("ana")


@pytest.mark.sqlite
@pytest.mark.usefixtures("_rows", "_older_database")
def test_existing_database_is_copied_before_it_is_updated(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite: the file is all there is. The copy is whole, private and said."""

    def migrate(*args: object, **options: object) -> None:
        User.objects.create_user("made-by-the-update")

    monkeypatch.setattr(updating, "call_command", migrate)
    (line,) = update()

    (copy,) = (data / "backups").iterdir()
    assert line == f"Backed the database up to {copy} before updating it."
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with closing(sqlite3.connect(copy)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("SELECT username FROM chat_user").fetchall() == [("ana",)]


@pytest.mark.sqlite
@pytest.mark.usefixtures("_rows")
def test_last_copies_are_kept_and_nothing_else_is_touched(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = data / "backups"
    folder.mkdir()
    mine = folder / "my-own.sqlite3"
    mine.write_text("kept")
    (folder / "before-update-20200101-000000.new").write_text("half a copy")
    other = folder / "parley-20200101-000000.tar.new"
    other.write_text("what manage.py backup writes at the moment")
    names = [back_up_at(second, monkeypatch).name for second in range(4)]

    assert sorted(path.name for path in folder.iterdir()) == [*names[1:], mine.name, other.name]


def back_up_at(second: int, monkeypatch: pytest.MonkeyPatch) -> Path:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]  # nothing asks for a zone
            return datetime(2026, 1, 1, 0, 0, second)

    monkeypatch.setattr(updating, "datetime", Clock)
    return back_up(keep=3)


@pytest.mark.sqlite
@pytest.mark.usefixtures("_rows", "_older_database")
def test_update_without_a_backup_is_refused_unless_it_is_asked_for(data: Path, settings: Settings) -> None:
    """A disk that is full, or a folder that cannot be written."""
    (data / "backups").write_text("in the way")

    with pytest.raises(BackupError, match="Make room there, or set BACKUPS=0"):
        update()
    settings.BACKUPS = 0
    assert update() == []
