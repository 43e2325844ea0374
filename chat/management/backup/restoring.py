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
from django.utils.text import get_text_list

from chat import schema
from chat.management.backup import databases
from chat.management.backup.archive import FILES, KEY, PUSH_KEY, WORKSPACES, Archive, BackupError
from chat.management.backup.leftovers import working_in
from chat.management.backup.making import ASIDE, key_fingerprint, stored_names
from chat.management.paths import made, require_writable
from chat.services.maintenance.key_mark import forget_key
from config.data_folder import OWNER_ONLY_FOLDER, sync_folder

ASIDE_NAME = f"{ASIDE}%Y%m%d-%H%M%S"
TEMPORARY = ".restore-"


def require_usable(archive: Archive) -> None:
    """Raise BackupError for a backup of another kind of database, or of a newer version."""
    if archive.manifest["database"] != connection.vendor:
        raise BackupError(
            f"The backup is of a {archive.manifest['database']} database, but DATABASE_URL names a {connection.vendor} "
            f"one. Set DATABASE_URL to a {archive.manifest['database']} database."
        )
    applied = {tuple(migration) for migration in archive.manifest["migrations"]}
    if unknown := applied - schema.known_migrations():
        name = ".".join(min(unknown))
        raise BackupError(f"The backup was made by a newer version of Parley ({name}). Install that version first.")


def require_empty() -> None:
    """Raise BackupError if the installation contains data."""
    places = []
    if not databases.is_empty():
        places.append("the database")
    if next(stored_names(storages["default"]), None) is not None:
        places.append("the files")
    if any(Path(settings.WORKSPACES).glob("*")):
        places.append(f"{settings.WORKSPACES}")
    if places:
        raise BackupError(
            f"There is already data in {get_text_list(places, 'and')}. Use --replace to move it aside and restore."
        )


def require_places(archive: Archive) -> None:
    """Raise BackupError or OSError if what the archive contains cannot be written to its places.

    Otherwise the restore would only find this after it has replaced the database.
    """
    files = storages["default"]
    folders = {WORKSPACES: Path(settings.WORKSPACES)}
    if isinstance(files, FileSystemStorage):
        folders[FILES] = Path(files.location)
    for prefix, folder in folders.items():
        if folder.exists() and not folder.is_dir():
            raise BackupError(f"{folder} is not a folder. Move it away, or change the setting that names it.")
        is_moved = folder.exists() and any(folder.iterdir())
        if is_moved or next(archive.names(prefix), None) is not None:
            require_writable(folder.parent)
    require_writable(Path(settings.DATA_DIR))
    databases.require_writable()


def restore(archive: Archive, report: Callable[[str], None]) -> None:
    """Restore an archive that has been checked. First move existing data aside. Raise BackupError and OSError."""
    databases.require_unused()
    data = Path(settings.DATA_DIR)
    aside = data / "backups" / f"{datetime.now():{ASIDE_NAME}}"
    with (
        made(aside.parent),
        working_in(data, f"{TEMPORARY}*"),
        tempfile.TemporaryDirectory(dir=data, prefix=TEMPORARY) as temporary,
    ):
        staged = Path(temporary)
        _stage(archive, staged)
        try:
            databases.restore(staged / databases.entry(), aside)
            if connection.vendor != "sqlite":  # with SQLite, the next start accepts another key
                with suppress(DatabaseError):  # a backup of a version without the mark of the key
                    forget_key()
            if put_aside := _restore_files(archive, staged, aside):
                report(f"{put_aside} files that were in the bucket before are now under {aside.name} in the bucket.")
            _replace_folder(Path(settings.WORKSPACES), staged / WORKSPACES, aside / "workspaces")
            for name in (KEY, PUSH_KEY):
                _restore_key(staged, name, data, aside)
        except BaseException:
            report("The restore is incomplete. Before you start Parley, restore again with --replace.")
            raise
        finally:
            if aside.exists():
                report(f"The previous data is in {aside}.")
    sync_folder(data)
    if archive.manifest["key"] not in map(key_fingerprint, _keys_of_next_start(data)):
        place = f", which is in {data / KEY}" if KEY in archive.entries else ""
        report(
            "SECRET_KEY is not the one of the backup: all users must sign in again, and two-step verification must be "
            f"reset for each account that has it. To avoid this, set SECRET_KEY_FALLBACKS to the earlier key{place}."
        )


def _stage(archive: Archive, staged: Path) -> None:
    """Extract everything next to its destination, so that unreadable entries fail before anything has changed.

    If files are stored elsewhere than in a local folder, they are later read from the archive.
    """
    is_local = isinstance(storages["default"], FileSystemStorage)
    for name in archive.entries:
        if is_local or not name.startswith(FILES):
            archive.extract(name, staged / name)
    for folder, _folders, _files in os.walk(staged):
        sync_folder(Path(folder))


def _restore_files(archive: Archive, staged: Path, aside: Path) -> int:
    """Restore the attached files. A local folder is replaced in one step, a bucket file by file.

    Return the number of files that were moved aside in the bucket.
    """
    storage = storages["default"]
    if isinstance(storage, FileSystemStorage):
        _replace_folder(Path(storage.location), staged / FILES, aside / "files")
        return 0
    from chat.s3 import S3Storage  # imported here, because its client may not be installed

    assert isinstance(storage, S3Storage)  # noqa: S101  # the only other storage in settings.py
    present = list(stored_names(storage))
    for name in present:
        storage.move(name, f"{aside.name}/{name}")
    for name in archive.names(FILES):
        with archive.open(name) as source:
            storage.save(name.removeprefix(FILES), File(source))
    return len(present)


def _replace_folder(folder: Path, new: Path, aside: Path) -> None:
    """Move a folder aside unless it is empty, and move a new one, if there is one, to its place."""
    if folder.exists() and any(folder.iterdir()):
        aside.parent.mkdir(mode=OWNER_ONLY_FOLDER, exist_ok=True)
        shutil.move(folder, aside)
    if new.exists():
        if folder.exists():
            folder.rmdir()
        shutil.move(new, folder)
        sync_folder(folder.parent)


def _restore_key(staged: Path, name: str, data: Path, aside: Path) -> None:
    """Restore a key that Parley has generated, if the archive contains it. A key in the settings takes precedence."""
    if not (staged / name).exists():
        return
    present = data / name
    if present.exists():
        aside.mkdir(mode=OWNER_ONLY_FOLDER, exist_ok=True)
        present.rename(aside / name)
    (staged / name).rename(present)


def _keys_of_next_start(data: Path) -> list[str]:
    """Return the keys with which the next start can read what was signed and encrypted.

    The key of this process is another one if it comes from a file that the restore has replaced.
    """
    own, stored = os.environ.get("SECRET_KEY", ""), data / KEY
    if not own and stored.exists():
        own = stored.read_text(errors="replace").strip()
    return [own, *settings.SECRET_KEY_FALLBACKS]
