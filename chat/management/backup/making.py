"""Make a backup."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from django.conf import settings
from django.core.files.storage import Storage, default_storage
from django.db import DatabaseError, connection
from django.utils.crypto import salted_hmac

from agents.sandbox.browsing import MAX_DEPTH, NotThere, open_folder
from chat import schema
from chat.management.backup import databases
from chat.management.backup.archive import FILES, KEY, PUSH_KEY, WORKSPACES, ArchiveWriter, BackupError
from chat.management.backup.leftovers import working_in
from chat.models import ChatMessage, Installation, MessageStatus
from chat.queries.forked_files import FILE_TOOLS
from chat.services.maintenance.files_mark import WrongFilesError, require_known_files
from chat.services.maintenance.key_mark import WrongKeyError, require_known_key
from config.data_folder import OWNER_ONLY_FOLDER

NAME = "parley-%Y%m%d-%H%M%S.tar"
PATTERN = "parley-????????-??????.tar"
# The prefix of the folder to which a restore moves the data that it replaces.
ASIDE = "before-restore-"
TEMPORARY = ".parley-backup-"
# Bytes. A workspace's file is copied before it is archived, because its size may change. Up to this size, in memory.
IN_MEMORY = 8 << 20
# Errors of a file or folder that was deleted, or replaced by another kind of file, after it was listed.
GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
# Bytes of a file's path in the folder of all workspaces. A restore first writes it below a folder with a longer name.
MAX_PATH_LENGTH = 3_500
# The most unreadable entries that are reported by name, and the most characters of a path.
MAX_REPORTED, MAX_REPORTED_LENGTH = 20, 500


def folder() -> Path:
    """Return the default folder for backups."""
    return Path(settings.DATA_DIR) / "backups"


def key_fingerprint(key: str) -> str:
    """Return a fingerprint of a SECRET_KEY, by which backups with the same key can be recognized."""
    return salted_hmac("chat.backup", "key", secret=key, algorithm="sha256").hexdigest()


def make(path: Path, report: Callable[[str], None]) -> Counter[str]:
    """Write a backup to a new file, and return the numbers of its contents by kind. Raise BackupError and OSError.

    Commands in workspaces can create entries that cannot be read. These are reported and left out. The database is
    dumped first, so the archive has the files of all its rows, unless these were deleted while the backup was made.
    """
    _require_settings_of_the_server(report)
    counts: Counter[str] = Counter()
    path.parent.mkdir(mode=OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
    with (
        working_in(path.parent, f"{TEMPORARY}*", f"{PATTERN}.new"),
        ArchiveWriter(path) as archive,
        tempfile.TemporaryDirectory(dir=path.parent, prefix=TEMPORARY) as temporary,
    ):
        migrations = sorted(schema.applied_migrations())
        dumped = Path(temporary) / databases.entry()
        databases.dump(dumped)
        archive.add_path(databases.entry(), dumped)
        dumped.unlink()
        for name in stored_names(default_storage):
            _add_file(archive, name, counts)
        unreadable = _Unreadable(report)
        for opened, name in _walk(Path(settings.WORKSPACES), unreadable):
            _add_of_workspace(archive, opened, name, Path(temporary), counts, unreadable)
        for name, used in ((KEY, settings.SECRET_KEY), (PUSH_KEY, settings.VAPID_PRIVATE_KEY)):
            key = Path(settings.DATA_DIR) / name
            if key.exists() and key.read_text().strip() == used:
                archive.add_path(name, key)
        if unreadable.count:
            counts["unreadable entries left out"] = unreadable.count
        archive.finish(
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            database=connection.vendor,
            migrations=migrations,
            key=key_fingerprint(settings.SECRET_KEY),
        )
    return counts


def _require_settings_of_the_server(report: Callable[[str], None]) -> None:
    """Raise BackupError if the files or the key are not those of the database.

    With other settings than the server's, the backup would be incomplete, which would only be noticed after a restore.
    If the folder of session files is missing, only report it.
    """
    marks = _marks()
    try:
        if "files_mark" in marks:
            require_known_files()
        if "key_mark" in marks:
            require_known_key()
    except (WrongFilesError, WrongKeyError) as error:
        raise BackupError(str(error)) from error
    # Without an index, this may read all messages, as the dump does after it.
    used = ChatMessage.objects.filter(tool_name__in=FILE_TOOLS, status=MessageStatus.COMPLETE)
    with suppress(DatabaseError):  # databases of earlier versions may lack a column
        if not Path(settings.WORKSPACES).exists() and used.exists():
            report(
                f"The backup has no session files, because {settings.WORKSPACES} does not exist, although agents have "
                "used such files. Set WORKSPACES to the value of the server."
            )


def _marks() -> set[str]:
    """Return the columns of the table of marks. Databases of earlier versions have fewer of them, or no such table."""
    table = Installation._meta.db_table
    with connection.cursor() as cursor:
        if table not in connection.introspection.table_names(cursor):
            return set()
        return {column.name for column in connection.introspection.get_table_description(cursor, table)}


def delete_older(kept: int) -> None:
    """Delete all backups in the default folder except the last `kept`."""
    for old in sorted(folder().glob(PATTERN))[:-kept]:
        old.unlink()


def stored_names(storage: Storage, folder: str = "") -> Iterator[str]:
    """Yield the names of all stored files, without those that a restore has moved aside."""
    try:
        folders, files = storage.listdir(folder)
    except FileNotFoundError:
        return
    prefix = f"{folder}/" if folder else ""
    yield from (prefix + name for name in sorted(files))
    for name in sorted(folders):
        if folder or not name.startswith(ASIDE):
            yield from stored_names(storage, prefix + name)


def _add_file(archive: ArchiveWriter, name: str, counts: Counter[str]) -> None:
    try:
        source = default_storage.open(name, "rb")
    except FileNotFoundError:  # deleted after it was listed
        return
    with source:
        archive.add(FILES + name, source, source.size)
    counts["files"] += 1


class _Unreadable:
    """Reports the entries that a backup leaves out. The first ones are reported by name."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.count = 0
        self._report = report

    def add(self, path: str | Path, error: OSError) -> None:
        """Report an error, unless the entry was deleted or replaced after it was listed."""
        if error.errno in GONE:
            return
        self.count += 1
        if self.count <= MAX_REPORTED:
            shown = str(path) if len(str(path)) <= MAX_REPORTED_LENGTH else f"{str(path)[:MAX_REPORTED_LENGTH]}…"
            self._report(f"Left out of the backup, because it cannot be read: {shown}: {error.strerror}")


def _walk(root: Path, unreadable: _Unreadable) -> Iterator[tuple[int, str]]:
    """Yield each file and link below a folder, as the descriptor of its open folder and its path.

    Commands may change the folder in the meantime. Each folder is opened relative to its parent, so that a folder that
    has become a link is not followed. Entries that a restore could not write, because of their depth or name, are left
    out.
    """
    root, folders = root.resolve(), [""]  # the operator may have made the root a link
    while folders:
        path = folders.pop()
        try:
            if len(os.fsencode(path)) > MAX_PATH_LENGTH or path.count("/") > MAX_DEPTH:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
            with open_folder(root, path) as folder, os.scandir(folder) as entries:
                below = []
                for entry in sorted(entries, key=lambda entry: entry.name):
                    inner = f"{path}/{entry.name}" if path else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        below.append(inner)
                    elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                        yield folder, inner
                folders += reversed(below)
        except NotThere as error:
            if isinstance(error.__cause__, OSError):
                unreadable.add(root / path, error.__cause__)
        except OSError as error:
            unreadable.add(root / path, error)


def _add_of_workspace(
    archive: ArchiveWriter, folder: int, path: str, temporary: Path, counts: Counter[str], unreadable: _Unreadable
) -> None:
    name = path.rpartition("/")[2]
    try:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            archive.add_link(WORKSPACES + path, os.readlink(name, dir_fd=folder))
            return
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError as error:
        unreadable.add(path, error)
        return
    # Large copies are next to the archive, because /tmp is often a small file system in memory.
    with os.fdopen(handle, "rb") as source, tempfile.SpooledTemporaryFile(IN_MEMORY, dir=str(temporary)) as copied:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            return
        size = _copy(source, copied)
        copied.seek(0)
        archive.add(WORKSPACES + path, copied, size, mode=stat.S_IMODE(mode))
    counts["session files"] += 1


def _copy(source: IO[bytes], target: IO[bytes]) -> int:
    size = 0
    while chunk := source.read(1 << 20):
        size += target.write(chunk)
    return size
