"""Back up and migrate the database when a server starts."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.core.management.commands.migrate import Command as Migrate
from django.core.management.sql import emit_post_migrate_signal
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection

from chat import schema
from chat.management.lock_retries import repeat_while_locked
from chat.management.migration_lock import one_at_a_time
from chat.management.paths import require_writable
from chat.services.maintenance.files_mark import require_own_files
from chat.services.maintenance.key_mark import require_own_key
from config.data_folder import OWNER_ONLY_FOLDER, sync_folder

NAME = "before-update-%Y%m%d-%H%M%S.sqlite3"
OWN_FOLDER = "Make Parley's account the owner of this folder"
REMEDIES = {
    errno.EACCES: OWN_FOLDER,
    errno.EPERM: OWN_FOLDER,
    errno.EROFS: "Allow Parley to write there (with systemd, by ReadWritePaths)",
    errno.EEXIST: "Move the file of this name away",
}


class BackupError(Exception):
    """The database cannot be backed up. The message contains the reason and what to do."""


def update_database(report: Callable[[str], None]) -> None:
    """Migrate the database. First back up an existing SQLite database.

    Raise WrongSchemaError if a newer version has migrated the database, WrongFilesError, WrongKeyError, BackupError,
    and DatabaseError.
    """
    with one_at_a_time(lambda: report("Waiting for another server to finish preparing the database.")):
        schema.require_known()
        missing = schema.missing_migrations()
        if missing and schema.applied_migrations():
            _prepare_update(len(missing), report)
        if missing:
            repeat_while_locked(lambda: call_command(Migrate(), interactive=False, verbosity=0), report)
        else:  # run the steps after a migration, which an earlier start may have missed; without a state of all models
            emit_post_migrate_signal(verbosity=0, interactive=False, db=DEFAULT_DB_ALIAS)
        require_own_files()
        if notice := require_own_key():
            report(notice)


def _prepare_update(migrations: int, report: Callable[[str], None]) -> None:
    if connection.vendor != "sqlite":
        report(
            f"Updating the database ({migrations} migration(s)). No backup was made: to make one, run manage.py backup."
        )
    elif settings.BACKUPS > 0:
        report(f"Backed up the database to {back_up(keep=settings.BACKUPS)} before updating it.")


def back_up(*, keep: int) -> Path:
    """Copy the SQLite database into the data folder, and delete all but the last `keep` copies. Raise BackupError."""
    folder = Path(settings.DATA_DIR) / "backups"
    path = folder / f"{datetime.now():{NAME}}"
    draft = path.with_suffix(".new")
    try:
        folder.mkdir(mode=OWNER_ONLY_FOLDER, exist_ok=True)
        require_writable(folder)
        for abandoned in folder.glob("before-update-*.new"):
            abandoned.unlink()
        with connection.cursor() as cursor:
            cursor.execute("VACUUM INTO %s", [str(draft)])
        _sync(draft)
        draft.replace(path)
        sync_folder(folder)
        for old in sorted(folder.glob("before-update-*.sqlite3"))[:-keep]:
            old.unlink()
    except (DatabaseError, OSError) as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        remedy = REMEDIES.get(getattr(error, "errno", 0), "Free disk space there")
        raise BackupError(
            f"the database cannot be backed up to {folder} before it is updated: {error}. {remedy}, or set BACKUPS=0 "
            "to update without a backup."
        ) from error
    return path


def _sync(path: Path) -> None:
    path.chmod(0o600)
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
