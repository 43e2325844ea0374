"""Read the files of a workspace from outside of its sandbox: for people, in Parley's own process.

Commands can put anything there, and can change it while it is read. So each folder of a path is opened in the one
before it, no link is followed, and nothing but regular files is read: no path leads out, and no pipe blocks.
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

MOST_ENTRIES = 1_000
MOST_IN_ARCHIVE = 100_000
LONGEST_PATH = 4_096
MAX_DEPTH = 200
# Files that a tool is about to rename.
DRAFTS = ".parley-draft"


class NotThere(Exception):
    """There is no such file or folder, it cannot be read, or the path is no path in a workspace."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is in a folder. `path` is relative to the workspace; `size` in bytes; `changed` in seconds since 1970."""

    name: str
    path: str
    kind: Kind
    size: int
    changed: float


@dataclass(frozen=True, slots=True)
class Listing:
    """A folder: folders first, then by name. `left_out` counts the entries beyond the first ones."""

    path: str
    entries: list[Entry]
    left_out: int


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A regular file, open for reading. What is written behind `size` later is not part of it."""

    entry: Entry
    stream: BinaryIO

    def pieces(self, size: int = 1 << 16) -> Iterator[bytes]:
        """Yield the content, and close the file."""
        left = self.entry.size
        with self.stream:
            while left > 0 and (piece := self.stream.read(min(size, left))):
                left -= len(piece)
                yield piece


def clean_path(path: str) -> str:
    """Return a path as `Entry.path` has it, "" for the workspace itself. Raises NotThere."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in path or len(path) > LONGEST_PATH or len(parts) > MAX_DEPTH:
        raise NotThere(path)
    return "/".join(parts)


def list_folder(root: Path, path: str = "", most: int = MOST_ENTRIES) -> Listing:
    """List a folder of a workspace, at most so many entries. Blocks. Raises NotThere."""
    path = clean_path(path)
    with open_folder(root, path) as folder:
        return _listing(folder, path, most)


def open_file(root: Path, path: str) -> OpenFile:
    """Open a file of a workspace. Blocks. Raises NotThere, also for what is not a regular file."""
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
    """Open all files below a folder, one after the other; what cannot be read is left out. Blocks. Raises NotThere."""
    folders = [list_folder(root, path, MOST_IN_ARCHIVE)]
    while folders:
        for entry in folders.pop().entries:
            with suppress(NotThere):
                if entry.kind == "file":
                    yield open_file(root, entry.path)
                elif entry.kind == "folder" and entry.path.count("/") < MAX_DEPTH:
                    folders.append(list_folder(root, entry.path, MOST_IN_ARCHIVE))


def _listing(folder: int, path: str, most: int) -> Listing:
    found: list[Entry] = []
    count = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(DRAFTS):
                continue
            with suppress(OSError):  # it is gone
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
        name = clean(name)  # it can be seen, but no address can name it
    elif stat.S_ISDIR(found.st_mode):
        kind = "folder"
    elif stat.S_ISREG(found.st_mode):
        kind = "file"
    elif stat.S_ISLNK(found.st_mode):
        kind = "link"
    return Entry(name, f"{above}/{name}" if above else name, kind, found.st_size, found.st_mtime)


def is_text(name: str) -> bool:
    """Tell whether a name is text, so that an address can have it."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def open_folder(root: Path, path: str) -> Iterator[int]:
    """Open a folder of a workspace, one part of the path in the one before it. Raises NotThere."""
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
    except (OSError, ValueError) as error:  # ValueError: a name that the file system cannot have
        raise NotThere(path) from error
