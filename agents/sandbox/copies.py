"""Read-only copies of files in a workspace, in a folder that commands cannot change (`Sandbox.copies`)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agents.sandbox.browsing import DRAFTS
from agents.sandbox.folder import give_away, make_folder

READ_ONLY = 0o444
READ_ONLY_FOLDER = 0o755
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Copy:
    """A file to copy. `name` has no slash; `read` returns its bytes, None if they are lost.

    `changed`, in seconds since 1970, and `size` tell whether a copy is this file.
    """

    name: str
    size: int
    changed: int
    read: Callable[[], bytes | None]


def update_copies(workspace: Path, folder: str, copies: Iterable[Copy]) -> bool:
    """Make a folder of the workspace hold these copies and no older ones; return whether it can. Blocks.

    Files that are no copies stay. Raises OSError.
    """
    make_folder(workspace)
    inside = os.open(workspace, _FOLDER)
    try:
        with suppress(FileExistsError):
            os.mkdir(folder, READ_ONLY_FOLDER, dir_fd=inside)
            give_away(folder, inside)
        try:
            place = os.open(folder, _FOLDER, dir_fd=inside)
        except OSError:  # a command has put something else there
            return False
        try:
            _update(place, {copy.name: copy for copy in copies})
        finally:
            os.close(place)
    finally:
        os.close(inside)
    return True


def _update(place: int, wanted: dict[str, Copy]) -> None:
    for name in os.listdir(place):
        found = os.stat(name, dir_fd=place, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) != READ_ONLY:
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
    with os.fdopen(os.open(draft, _NEW_FILE, READ_ONLY, dir_fd=place), "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), READ_ONLY)
    os.utime(draft, (copy.changed, copy.changed), dir_fd=place)
    give_away(draft, place)
    os.rename(draft, copy.name, src_dir_fd=place, dst_dir_fd=place)
