"""Read-only copies of files in a workspace, in a folder that commands cannot change (`Sandbox.copies`)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agents.sandbox.browsing import DRAFTS
from agents.sandbox.folder import FOLDER, NEW_FILE, give_away, make_folder

# The folder of a workspace for the files that users attach.
ATTACHMENTS = "attachments"
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


def update_copies(workspace: Path, folder: str, copies: Iterable[Copy]) -> bool:
    """Update a folder of the workspace so that it has these copies and no older ones. Blocks. Raise OSError.

    Files that are not copies stay. Return False if a command has put something else in the folder's place.
    """
    make_folder(workspace)
    inside = os.open(workspace, FOLDER)
    try:
        with suppress(FileExistsError):
            os.mkdir(folder, READ_ONLY_FOLDER, dir_fd=inside)
            give_away(folder, inside)
        try:
            place = os.open(folder, FOLDER, dir_fd=inside)
        except OSError:  # a command has put something else there
            return False
        try:
            _update(place, {copy.name: copy for copy in copies})
        finally:
            os.close(place)
    finally:
        os.close(inside)
    return True


def is_copy(found: os.stat_result) -> bool:
    """Return whether a file in a folder of copies looks like a copy. Commands can make such files, too."""
    return stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == READ_ONLY


def _update(place: int, wanted: dict[str, Copy]) -> None:
    for name in os.listdir(place):
        found = os.stat(name, dir_fd=place, follow_symlinks=False)
        if not is_copy(found):
            wanted.pop(name, None)
            continue
        copy = wanted.get(name)
        if copy is not None and (copy.size, copy.changed) == (found.st_size, int(found.st_mtime)):
            del wanted[name]
        else:
            os.unlink(name, dir_fd=place)
    for copy in wanted.values():
        _write(place, copy)


def _write(place: int, copy: Copy) -> None:
    data = copy.read()
    if data is None:
        return
    draft = f"copy{DRAFTS}"
    with suppress(FileNotFoundError):
        os.unlink(draft, dir_fd=place)
    with os.fdopen(os.open(draft, NEW_FILE, READ_ONLY, dir_fd=place), "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), READ_ONLY)
    os.utime(draft, (copy.changed, copy.changed), dir_fd=place)
    give_away(draft, place)
    os.rename(draft, copy.name, src_dir_fd=place, dst_dir_fd=place)
