"""Updating the database at the start: not from a newer version, and not without a backup of existing rows."""

from __future__ import annotations

import errno
import os
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
    """A database that seems older: this version has one more migration, which has nothing to apply."""
    known = schema.known_migrations()
    monkeypatch.setattr(schema, "known_migrations", lambda: known | {("chat", "9999_next")})


def update() -> list[str]:
    """Update the database and return the reports."""
    lines: list[str] = []
    update_database(lines.append)
    return lines


def test_database_of_a_newer_version_is_refused() -> None:
    """A newer database is refused, because older code would misread its rows and write invalid ones."""
    MigrationRecorder(connection).record_applied("chat", "9999_next")

    with pytest.raises(WrongSchemaError, match=r"newer version of Parley \(chat.9999_next\)"):
        update()
    with pytest.raises(WrongSchemaError, match="newer version"):
        schema.require_current()


@pytest.mark.usefixtures("_older_database")
def test_database_of_another_branch_is_refused(data: Path) -> None:
    """A database that lacks one migration and has an unknown one is refused, and nothing is applied."""
    MigrationRecorder(connection).record_applied("chat", "9998_other")

    with pytest.raises(WrongSchemaError, match=r"newer version of Parley \(chat.9998_other\)"):
        update()
    assert list(data.iterdir()) == []


@pytest.mark.usefixtures("_older_database")
def test_server_that_does_not_migrate_asks_for_it() -> None:
    with pytest.raises(WrongSchemaError, match=r"has 1 unapplied migration\(s\)\. Run manage.py migrate first"):
        schema.require_current()


def test_known_migrations_are_those_of_django() -> None:
    """The names that are read from the folders are those that Django finds by importing the migrations."""
    assert schema.known_migrations() == set(MigrationLoader(None).disk_migrations or ())


def test_group_that_a_broken_start_has_not_made_is_made_by_the_next(data: Path) -> None:
    """If a start ended between the last migration and the following steps, the next start does them."""
    Group.objects.filter(name=MANAGERS).delete()
    assert update() == []
    assert Group.objects.get(name=MANAGERS).permissions.count() == len(MANAGED)


def test_database_of_this_version_is_left_alone(data: Path) -> None:
    assert update() == []
    assert list(data.iterdir()) == []


@pytest.mark.postgres
@pytest.mark.usefixtures("_older_database")
def test_postgresql_is_the_operator_s_to_back_up(data: Path) -> None:
    """PostgreSQL is not copied, because a copy would be of the whole server. The operator backs it up."""
    (line,) = update()

    assert "No backup was made: to make one, run manage.py backup" in line
    assert list(data.iterdir()) == []


@pytest.fixture
def _rows(transactional_db: None) -> None:
    """Committed rows, because a copy contains only those."""
    User.objects.create_user("ana")


@pytest.mark.sqlite
@pytest.mark.usefixtures("_rows", "_older_database")
def test_existing_database_is_copied_before_it_is_updated(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's file is copied completely and privately, and the copy is reported."""

    def migrate(*args: object, **options: object) -> None:
        User.objects.create_user("made-by-the-update")

    monkeypatch.setattr(updating, "call_command", migrate)
    (line,) = update()

    (copy,) = (data / "backups").iterdir()
    assert line == f"Backed up the database to {copy} before updating it."
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
    """An update is refused if the backup fails, such as with a full disk, unless the operator allows it."""
    (data / "backups").write_text("in the way")

    with pytest.raises(BackupError, match="Move the file of this name away, or set BACKUPS=0"):
        update()
    settings.BACKUPS = 0
    assert update() == []


@pytest.mark.sqlite
@pytest.mark.usefixtures("_rows")
@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, "Permission denied.*Make Parley's account the owner of this folder"),
        (errno.EROFS, "Read-only file system.*Allow Parley to write there"),
        (errno.ENOSPC, "No space left.*Free disk space there"),
    ],
)
def test_error_of_the_copy_says_what_helps(
    data: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    """A backup that root has made leaves a folder of root, and systemd can make folders read-only."""

    def refuse(folder: Path) -> None:
        raise OSError(number, os.strerror(number), str(folder))

    monkeypatch.setattr(updating, "require_writable", refuse)
    with pytest.raises(BackupError, match=words):
        updating.back_up(keep=1)
