"""Restore a backup."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.core.files.base import File
from django.core.files.storage import FileSystemStorage, storages
from django.db import DatabaseError, connection

from chat import schema
from chat.management.backup import databases
from chat.management.backup.archive import FILES, KEY, PUSH_KEY, WORKSPACES, Archive, BackupError
from chat.management.backup.leftovers import working_in
from chat.management.backup.making import ASIDE, key_fingerprint, stored_names
from chat.services.maintenance.key_mark import forget_key
from config.data_folder import OWNER_ONLY_FOLDER, sync_folder

ASIDE_NAME = f"{ASIDE}%Y%m%d-%H%M%S"
TEMPORARY = ".restore-"


def require_usable(archive: Archive) -> None:
    """Refuse a backup of another kind of database, or of a newer version. Raises BackupError."""
    if archive.manifest["database"] != connection.vendor:
        raise BackupError(
            f"The backup is of a {archive.manifest['database']} database, and DATABASE_URL names a {connection.vendor} "
            "one. Restore it to the same kind."
        )
    applied = {tuple(migration) for migration in archive.manifest["migrations"]}
    if unknown := applied - schema.known_migrations():
        name = ".".join(min(unknown))
        raise BackupError(f"The backup was made by a newer version of Parley ({name}). Install that version first.")


def require_empty() -> None:
    """Refuse to restore over data. Raises BackupError."""
    places = []
    if not databases.is_empty():
        places.append("the database")
    if next(stored_names(storages["default"]), None) is not None:
        places.append("the files")
    if any(Path(settings.WORKSPACES).glob("*")):
        places.append(f"{settings.WORKSPACES}")
    if places:
        raise BackupError(f"There is data already in {', '.join(places)}. --replace puts it aside and restores.")


def restore(archive: Archive, report: Callable[[str], None]) -> None:
    """Restore an archive that has been checked. What is there is put aside first. Raises BackupError and OSError."""
    databases.require_unused()
    data = Path(settings.DATA_DIR)
    aside = data / "backups" / f"{datetime.now():{ASIDE_NAME}}"
    aside.parent.mkdir(mode=OWNER_ONLY_FOLDER, exist_ok=True)
    with (
        working_in(data, f"{TEMPORARY}*"),
        tempfile.TemporaryDirectory(dir=data, prefix=TEMPORARY) as temporary,
    ):
        staged = Path(temporary)
        _stage(archive, staged)
        try:
            databases.restore(staged / databases.entry(), aside)
            if connection.vendor != "sqlite":  # there the next start takes another key, as one machine has them all
                with suppress(DatabaseError):  # a backup of a version that knew no mark
                    forget_key()
            if put_aside := _restore_files(archive, staged, aside):
                report(f"{put_aside} files that were in the bucket before are below {aside.name} there.")
            _replace_folder(Path(settings.WORKSPACES), staged / WORKSPACES, aside / "workspaces")
            for name in (KEY, PUSH_KEY):
                _restore_key(staged, name, data, aside)
        except BaseException:
            report("The restore is incomplete: restore again with --replace before Parley starts.")
            raise
        finally:
            if aside.exists():
                report(f"What was there before is in {aside}.")
    sync_folder(data)
    if KEY not in archive.entries and archive.manifest["key"] != key_fingerprint():
        report(
            "SECRET_KEY is not the one of the backup: all users must sign in again, and two-step verification must be "
            "reset for each account that has it. Set SECRET_KEY to the old one, and nothing is lost."
        )


def _stage(archive: Archive, staged: Path) -> None:
    """Extract everything beside its place: what cannot be read or written then fails before anything has changed.

    Files for another storage than a local folder are taken from the archive.
    """
    is_local = isinstance(storages["default"], FileSystemStorage)
    for name in archive.entries:
        if is_local or not name.startswith(FILES):
            archive.extract(name, staged / name)
    for folder, _folders, _files in os.walk(staged):
        sync_folder(Path(folder))


def _restore_files(archive: Archive, staged: Path, aside: Path) -> int:
    """Restore the attached files: a local folder is replaced at once, a bucket file by file.

    Return how many files were put aside in the bucket.
    """
    storage = storages["default"]
    if isinstance(storage, FileSystemStorage):
        _replace_folder(Path(storage.location), staged / FILES, aside / "files")
        return 0
    from chat.s3 import S3Storage  # its client may not be installed

    assert isinstance(storage, S3Storage)  # noqa: S101  # the other storage that settings.py knows
    present = list(stored_names(storage))
    for name in present:
        storage.move(name, f"{aside.name}/{name}")
    for name in archive.names(FILES):
        with archive.open(name) as source:
            storage.save(name.removeprefix(FILES), File(source))
    return len(present)


def _replace_folder(folder: Path, new: Path, aside: Path) -> None:
    """Put a folder aside unless it is empty, and another one, if it exists, in its place."""
    if folder.exists() and any(folder.iterdir()):
        aside.parent.mkdir(mode=OWNER_ONLY_FOLDER, exist_ok=True)
        shutil.move(folder, aside)
    if new.exists():
        if folder.exists():
            folder.rmdir()
        shutil.move(new, folder)
        sync_folder(folder.parent)


def _restore_key(staged: Path, name: str, data: Path, aside: Path) -> None:
    """Restore a key that the archive has, which is one that Parley made. One in the settings stays before it."""
    if not (staged / name).exists():
        return
    present = data / name
    if present.exists():
        aside.mkdir(mode=OWNER_ONLY_FOLDER, exist_ok=True)
        present.rename(aside / name)
    (staged / name).rename(present)
