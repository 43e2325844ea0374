"""The archive of a backup: a tar file. Its last member is the manifest, with the size and checksum of each other."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, Any, Self

from config.data_folder import OWNER_ONLY_FILE, OWNER_ONLY_FOLDER, sync_folder

FORMAT = 1
MANIFEST = "manifest.json"
NAME_ONE = "Name an archive that `manage.py backup` has made, and that this account may read."
FILES, WORKSPACES, KEY, PUSH_KEY = "files/", "workspaces/", "secret_key", "vapid_key"


class BackupError(Exception):
    """A backup cannot be made, read or restored. The message contains the reason and what to do."""


class ArchiveWriter:
    """Writes an archive under a temporary name until it is complete and on the disk. Use it as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._draft = path.with_name(f"{path.name}.new")
        self._entries: dict[str, dict[str, Any]] = {}
        self._file: IO[bytes] = io.BytesIO()
        self._tar: tarfile.TarFile | None = None

    def __enter__(self) -> Self:
        self.path.parent.mkdir(mode=OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        handle = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY_FILE)
        self._file = os.fdopen(handle, "wb")
        self._tar = tarfile.open(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(OSError):  # the disk is full, and what the file still buffers is of no use
            self._file.close()
        with suppress(OSError):
            self._draft.unlink()

    def add(self, name: str, source: IO[bytes], size: int, *, mode: int = OWNER_ONLY_FILE) -> None:
        """Add `size` bytes of a file. Raise BackupError if the file is shorter or cannot be read."""
        reader = _Hashing(name, source)
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = size, mode, int(time.time())
        try:
            self._open.addfile(info, reader)
        except OSError as error:
            if error.errno is None:  # an error of tarfile, not of the disk to which it writes
                raise BackupError(f"{name} became shorter while it was read. Repeat the backup.") from error
            raise
        self._entries[name] = {"size": size, "sha256": reader.hexdigest()}

    def add_path(self, name: str, path: Path) -> None:
        with path.open("rb") as source:
            self.add(name, source, path.stat().st_size)

    def add_link(self, name: str, target: str) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = tarfile.SYMTYPE, target
        self._open.addfile(info)
        self._entries[name] = {"link": target}

    def finish(self, **about: Any) -> None:
        """Write the manifest, and rename the archive to its final name once it is on the disk."""
        manifest = json.dumps({"format": FORMAT, **about, "entries": self._entries}, indent=1).encode()
        info = tarfile.TarInfo(MANIFEST)
        info.size, info.mode, info.mtime = len(manifest), OWNER_ONLY_FILE, int(time.time())
        self._open.addfile(info, io.BytesIO(manifest))
        self._open.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._draft.replace(self.path)
        sync_folder(self.path.parent)

    @property
    def _open(self) -> tarfile.TarFile:
        assert self._tar is not None  # noqa: S101  # inside the with statement
        return self._tar


class Archive:
    """An archive to restore. Call `check` before reading anything else from it."""

    def __init__(self, path: Path) -> None:
        try:
            if path.exists() and not path.is_file():
                raise BackupError(f"{path} is not a file. {NAME_ONE}")
            self._file = path.open("rb")
        except OSError as error:
            raise BackupError(f"{path}: {error.strerror}. {NAME_ONE}") from error
        try:
            self._tar = tarfile.open(fileobj=self._file, mode="r:")  # noqa: SIM115  # the file is closed by `close`
            manifest = self._tar.extractfile(MANIFEST)
            self.manifest: dict[str, Any] = json.load(manifest) if manifest else {}
            self.entries: dict[str, dict[str, Any]] = dict(self.manifest["entries"])
            version = self.manifest["format"]
        except (OSError, tarfile.TarError, ValueError, KeyError, TypeError) as error:
            self.close()
            if isinstance(error, OSError) and error.errno:
                raise BackupError(f"{path}: {error.strerror}. {NAME_ONE}") from error
            raise BackupError(
                f"{path} is not a complete backup of Parley: it is another kind of file, or its end is missing. If it "
                "is compressed, unpack it. If it was copied from another place, copy it again."
            ) from error
        if version != FORMAT:
            self.close()
            raise BackupError(f"{path} has the format of another version of Parley. Restore it with that version.")

    def check(self) -> None:
        """Read the whole archive once. Raise BackupError if anything is missing, added or changed."""
        missing = dict(self.entries)
        for info in self._tar:
            if info.name == MANIFEST:
                continue
            entry = missing.pop(info.name, None)
            if entry is None or not _is_safe(info) or self._is_below_a_link(info):
                raise BackupError(f"The archive has an entry that is not in its manifest: {info.name}")
            if info.issym():
                is_same = entry.get("link") == info.linkname
            else:
                is_same = (entry.get("size"), entry.get("sha256")) == (info.size, self._digest(info))
            if not is_same:
                raise BackupError(f"{info.name} is damaged: it differs from the manifest.")
        if missing:
            raise BackupError(f"The archive is incomplete: {min(missing)} is missing.")

    def _is_below_a_link(self, info: tarfile.TarInfo) -> bool:
        """Return whether an entry would be written through a link of the archive."""
        return any("link" in self.entries.get(str(above), ()) for above in PurePosixPath(info.name).parents)

    def _digest(self, info: tarfile.TarInfo) -> str:
        source = self._tar.extractfile(info)
        assert source is not None  # noqa: S101  # a regular file
        return hashlib.file_digest(source, "sha256").hexdigest()  # type: ignore[arg-type]  # it only reads

    def names(self, prefix: str) -> Iterator[str]:
        return (name for name in self.entries if name.startswith(prefix))

    def open(self, name: str) -> IO[bytes]:
        found = self._tar.extractfile(self._members[name])
        assert found is not None  # noqa: S101  # checked above
        return found

    @cached_property
    def _members(self) -> dict[str, tarfile.TarInfo]:
        """The members by name. `TarFile.getmember` would search all of them for each name."""
        return {info.name: info for info in self._tar.getmembers()}

    def extract(self, name: str, path: Path) -> None:
        """Write an entry to a path: a file with its mode, or a link."""
        info = self._members[name]
        path.parent.mkdir(mode=OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        if info.issym():
            path.symlink_to(info.linkname)
            return
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, OWNER_ONLY_FILE)
        with os.fdopen(handle, "wb") as file, self.open(name) as source:
            while chunk := source.read(1 << 20):
                file.write(chunk)
            os.fchmod(handle, info.mode & 0o777)  # `os.open` would reduce the mode by the umask of this process
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        self._file.close()


def _is_safe(info: tarfile.TarInfo) -> bool:
    """Return whether an entry stays below the folder of its extraction, and is a file or a link of a workspace."""
    path = PurePosixPath(info.name)
    is_below = not path.is_absolute() and ".." not in path.parts
    return is_below and (info.isreg() or (info.issym() and info.name.startswith(WORKSPACES)))


class _Hashing:
    """Reads a file and computes its checksum."""

    def __init__(self, name: str, source: IO[bytes]) -> None:
        self._name = name
        self._source = source
        self._digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        try:
            data = self._source.read(size)
        except OSError as error:
            reason = error.strerror or error
            raise BackupError(
                f"{self._name} cannot be read: {reason}. Check the disk, then repeat the backup."
            ) from error
        self._digest.update(data)
        return data

    def hexdigest(self) -> str:
        return self._digest.hexdigest()
