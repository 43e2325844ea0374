"""Read-only copies of files in a workspace, in a folder that commands cannot change (`Sandbox.copies`)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from agents.sandbox.browsing import DRAFTS
from agents.sandbox.folder import FOLDER, NEW_FILE, give_away, make_folder

# The folder of a workspace for the files that users attach.
ATTACHMENTS = "attachments"
# The name of a copy that is being written. It stays after a crash, or if the disk is full.
DRAFT = f"copy{DRAFTS}"
READ_ONLY = 0o444
READ_ONLY_FOLDER = 0o755


@dataclass(frozen=True, slots=True)
class Copy:
    """A file to copy. `name` has no slash. `read` returns its bytes, or None if they are lost.

    An existing copy is kept if it has the same `size` and the same time `changed`, in seconds since 1970.
    """

    name: str
    size: int
    changed: int
    read: Callable[[], bytes | None]


def update_copies(workspace: Path, folder: str, copies: Iterable[Copy]) -> None:
    """Update a folder of the workspace so that it has these copies and nothing else. Blocks. Raise OSError.

    If it has anything else, or is no folder, it gets another name. Earlier versions let commands make it.
    """
    make_folder(workspace)
    inside = os.open(workspace, FOLDER)
    try:
        wanted = {copy.name: copy for copy in copies}
        if not _keep_only(wanted, folder, inside):
            os.rename(folder, _free_name(folder, inside), src_dir_fd=inside, dst_dir_fd=inside)
        with suppress(FileExistsError):
            os.mkdir(folder, READ_ONLY_FOLDER, dir_fd=inside)
            give_away(folder, inside)
        place = os.open(folder, FOLDER, dir_fd=inside)
        try:
            for copy in wanted.values():
                if not _is_current(copy, place):
                    _write(place, copy)
        finally:
            os.close(place)
    finally:
        os.close(inside)


def remove_copies(workspace: Path, folder: str, marks: Container[tuple[int, int]]) -> None:
    """Remove the copies that have these marks: their size, and their time of change in seconds since 1970.

    Other copies stay, so that a turn can update or use them at the same time. Raise OSError.
    """
    try:
        place = os.open(workspace / folder, FOLDER)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        for name in os.listdir(place):
            with suppress(FileNotFoundError):  # a turn may have removed it
                found = os.stat(name, dir_fd=place, follow_symlinks=False)
                if is_copy(found) and (found.st_size, int(found.st_mtime)) in marks:
                    os.unlink(name, dir_fd=place)
    finally:
        os.close(place)


def is_copy(found: os.stat_result) -> bool:
    """Return whether a file in a folder of copies looks like a copy."""
    return stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == READ_ONLY


def _keep_only(wanted: Mapping[str, Copy], folder: str, inside: int) -> bool:
    """Remove the copies that are not wanted. Return False if there is anything else; then remove all copies."""
    try:
        place = os.open(folder, FOLDER, dir_fd=inside)
    except FileNotFoundError:
        return True
    except OSError:  # a link or a file, or a folder that cannot be read
        return False
    try:
        os.fchmod(place, READ_ONLY_FOLDER)
        found = dict(_found(place))
        copies = {name for name, status in found.items() if is_copy(status) or name == DRAFT}
        has_others = len(copies) < len(found)
        for name in copies:
            if has_others or name not in wanted or not _is_current(wanted[name], place):
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=place)
    finally:
        os.close(place)
    return not has_others


def _found(place: int) -> Iterator[tuple[str, os.stat_result]]:
    for name in os.listdir(place):
        with suppress(FileNotFoundError):  # `remove_copies` may have removed it
            yield name, os.stat(name, dir_fd=place, follow_symlinks=False)


def _is_current(copy: Copy, place: int) -> bool:
    try:
        found = os.stat(copy.name, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return is_copy(found) and (copy.size, copy.changed) == (found.st_size, int(found.st_mtime))


def _free_name(folder: str, inside: int) -> str:
    taken = set(os.listdir(inside))
    return next(name for number in count(2) if (name := f"{folder}-{number}") not in taken)


def _write(place: int, copy: Copy) -> None:
    data = copy.read()
    if data is None:
        return
    with os.fdopen(os.open(DRAFT, NEW_FILE, READ_ONLY, dir_fd=place), "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), READ_ONLY)
    os.utime(DRAFT, (copy.changed, copy.changed), dir_fd=place)
    give_away(DRAFT, place)
    os.rename(DRAFT, copy.name, src_dir_fd=place, dst_dir_fd=place)
