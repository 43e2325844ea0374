"""Read the files of a workspace from outside of its sandbox: for users, in Parley's own process.

Commands can put anything into a workspace, and can change files while they are read. So each folder of a path is opened
relative to the one before it, links are not followed, and only regular files are read. Thus no path leads out of the
workspace, and no pipe blocks.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path
from typing import BinaryIO, Literal

from agents.safe_text import clean
from agents.sandbox.folder import FILE, FOLDER

Kind = Literal["folder", "file", "link", "other"]

MAX_ENTRIES = 1_000
MAX_IN_ARCHIVE = 100_000
MAX_PATH_LENGTH = 4_096
MAX_DEPTH = 200
# The suffix of files that a tool is about to rename.
DRAFTS = ".parley-draft"


class NotThere(Exception):
    """The file or folder does not exist or cannot be read, or the path is not valid in a workspace."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a folder. `path` is relative to the workspace, `size` in bytes, `changed` in seconds since 1970."""

    name: str
    path: str
    kind: Kind
    size: int
    changed: float


@dataclass(frozen=True, slots=True)
class Listing:
    """The entries of a folder: folders first, then sorted by name. `left_out` is the number of entries not listed."""

    path: str
    entries: list[Entry]
    left_out: int


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A regular file, open for reading. Bytes that are added after `size` later are not read."""

    entry: Entry
    stream: BinaryIO

    def pieces(self, size: int = 1 << 16) -> Iterator[bytes]:
        """Yield the content in pieces of at most `size` bytes, and close the file."""
        left = self.entry.size
        with self.stream:
            while left > 0 and (piece := self.stream.read(min(size, left))):
                left -= len(piece)
                yield piece


def clean_path(path: str) -> str:
    """Return a path in the form of `Entry.path`, "" for the workspace itself. Raise NotThere."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in path or len(path) > MAX_PATH_LENGTH or len(parts) > MAX_DEPTH:
        raise NotThere(path)
    return "/".join(parts)


def list_folder(root: Path, path: str = "", most: int = MAX_ENTRIES) -> Listing:
    """List at most `most` entries of a folder of a workspace. Blocks. Raise NotThere."""
    path = clean_path(path)
    with open_folder(root, path) as folder:
        return _listing(folder, path, most)


def open_file(root: Path, path: str) -> OpenFile:
    """Open a file of a workspace. Blocks. Raise NotThere, also if it is not a regular file."""
    path = clean_path(path)
    above, _, name = path.rpartition("/")
    if not name:
        raise NotThere(path)
    with open_folder(root, above) as folder, _as_missing(path):
        descriptor = os.open(name, FILE, dir_fd=folder)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            os.close(descriptor)
            raise NotThere(path)
        return OpenFile(_entry(name, above, found), os.fdopen(descriptor, "rb"))


def walk(root: Path, path: str = "") -> Iterator[OpenFile]:
    """Yield all files below a folder, each open. Files that cannot be read are left out. Blocks. Raise NotThere."""
    folders = [list_folder(root, path, MAX_IN_ARCHIVE)]
    while folders:
        for entry in folders.pop().entries:
            with suppress(NotThere):
                if entry.kind == "file":
                    yield open_file(root, entry.path)
                elif entry.kind == "folder" and entry.path.count("/") < MAX_DEPTH:
                    folders.append(list_folder(root, entry.path, MAX_IN_ARCHIVE))


def _listing(folder: int, path: str, most: int) -> Listing:
    found: list[Entry] = []
    count = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(DRAFTS):
                continue
            with suppress(OSError):  # a command has removed it
                found.append(_entry(entry.name, path, os.stat(entry.name, dir_fd=folder, follow_symlinks=False)))
                count += 1
            if len(found) >= 2 * most:
                found = _first(found, most)
    return Listing(path, _first(found, most), count - min(count, most))


def _first(entries: list[Entry], most: int) -> list[Entry]:
    return nsmallest(most, entries, key=lambda entry: (entry.kind != "folder", entry.name.casefold()))


def _entry(name: str, above: str, found: os.stat_result) -> Entry:
    kind: Kind = "other"
    if not is_text(name):
        name = clean(name)  # the name can be shown, but not opened
    elif stat.S_ISDIR(found.st_mode):
        kind = "folder"
    elif stat.S_ISREG(found.st_mode):
        kind = "file"
    elif stat.S_ISLNK(found.st_mode):
        kind = "link"
    return Entry(name, f"{above}/{name}" if above else name, kind, found.st_size, found.st_mtime)


def is_text(name: str) -> bool:
    """Return whether a name is valid Unicode text, so that a web address can contain it."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def open_folder(root: Path, path: str) -> Iterator[int]:
    """Open a folder of a workspace, each part of the path relative to the one before. Raise NotThere."""
    with _as_missing(path):
        descriptor = os.open(root, FOLDER)
        for part in filter(None, path.split("/")):
            try:
                inner = os.open(part, FOLDER, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = inner
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _as_missing(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a name that file systems cannot store
        raise NotThere(path) from error
