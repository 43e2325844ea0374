"""Copy a workspace to a new one from outside of its sandbox, while commands may be changing it.

Links are copied, but not followed. Besides links, only folders and regular files are copied, and holes of files stay
holes. A file is copied with the content and the length that it has when the copy reaches it.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from agents.sandbox.browsing import DRAFTS, MAX_DEPTH, NotThere, is_text, open_folder
from agents.sandbox.command import MB, Limits
from agents.sandbox.copies import ATTACHMENTS, is_copy
from agents.sandbox.folder import FILE, NEW_FILE, OWNER_ONLY, give_away, make_folder, remove_folder
from agents.sandbox.process import is_disk_full

PERMISSIONS = 0o777
# The bytes that are copied between two checks of the time, and between two checks of the disk. For the latter, an entry
# counts as COST_OF_ENTRY bytes.
PIECE = 8 * MB
BYTES_PER_CHECK = 64 * MB
COST_OF_ENTRY = MB // 8
# The errors of `copy_file_range` on file systems that do not support it.
CANNOT_COPY = (errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM)


class TooLarge(Exception):
    """The workspace is larger than the limits allow, or than can be copied in the given time."""


class DiskFull(Exception):
    """The disk has no room for the copy."""


@dataclass(slots=True)
class Copied:
    """The size of a copy: its entries (files, links and folders) and its bytes. `left_out` counts the missing entries.

    Entries are left out if they cannot be read, are neither file, link nor folder, or have names that are not text.
    """

    entries: int = 0
    size: int = 0
    left_out: int = 0


def duplicate(source: Path, target: Path, *, limits: Limits, seconds: float) -> Copied:
    """Copy a workspace to a folder that no command uses yet, within limits and `seconds`. Blocks.

    Files that tools are about to rename are left out, and so are copies of attachments, which are made from messages.
    Raise TooLarge, DiskFull and OSError. After an error, or if there is nothing to copy, the target does not exist.
    """
    copying = _Copying(source, target, limits, time.monotonic() + seconds)
    remove_folder(target)  # a crash may have left a part of a copy
    make_folder(target)
    try:
        copying.copy_all()
    except BaseException as error:
        remove_folder(target)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull from error
        raise
    if not copying.copied.entries:
        remove_folder(target)
    return copying.copied


@dataclass(slots=True)
class _Copying:
    source: Path
    target: Path
    limits: Limits
    until: float
    copied: Copied = field(default_factory=Copied)
    # The folders that were made, with the status of their originals. They get its permissions and times at the end.
    made: list[tuple[str, os.stat_result]] = field(default_factory=list)
    since_check: int = 0

    def copy_all(self) -> None:
        self._check_disk()
        folders = [""]
        while folders:
            path = folders.pop()
            try:
                with open_folder(self.source, path) as inside, open_folder(self.target, path) as place:
                    folders += self._copy_folder(path, inside, place)
            except NotThere:  # a command has replaced the folder, or it cannot be read
                self.copied.left_out += 1
        self._finish_folders()

    def _copy_folder(self, path: str, inside: int, place: int) -> Iterator[str]:
        """Copy the entries of a folder. Yield the paths of its folders, whose content is not copied yet."""
        with os.scandir(inside) as entries:
            for name in (entry.name for entry in entries):
                try:
                    found = os.stat(name, dir_fd=inside, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                except PermissionError:
                    self.copied.left_out += 1
                    continue
                if name.endswith(DRAFTS) or (path == ATTACHMENTS and is_copy(found)):
                    continue
                self._spend(0)
                if not is_text(name) or not self._copy_entry(name, found, inside, place):
                    self.copied.left_out += 1
                    continue
                self.copied.entries += 1
                if stat.S_ISDIR(found.st_mode):
                    inner = f"{path}/{name}" if path else name
                    if inner.count("/") >= MAX_DEPTH:
                        raise TooLarge
                    self.made.append((inner, found))
                    yield inner

    def _copy_entry(self, name: str, found: os.stat_result, inside: int, place: int) -> bool:
        """Copy a file or a link, or make a folder. Return False if it is none of these or cannot be read."""
        if stat.S_ISDIR(found.st_mode):
            os.mkdir(name, OWNER_ONLY, dir_fd=place)
        elif stat.S_ISLNK(found.st_mode):
            try:
                leads_to = os.readlink(name, dir_fd=inside)
            except OSError:  # a command has replaced it
                return False
            os.symlink(leads_to, name, dir_fd=place)
        elif not stat.S_ISREG(found.st_mode) or not self._copy_file(name, inside, place):
            return False
        give_away(name, place)
        return True

    def _copy_file(self, name: str, inside: int, place: int) -> bool:
        try:
            source = os.open(name, FILE, dir_fd=inside)
        except OSError:
            return False
        try:
            found = os.fstat(source)
            if not stat.S_ISREG(found.st_mode):
                return False
            target = os.open(name, NEW_FILE, OWNER_ONLY, dir_fd=place)
            try:
                for start, end in _parts_with_data(source, found.st_size):
                    self._copy_part(source, target, start, end)
                os.ftruncate(target, min(found.st_size, os.fstat(source).st_size))
                _finish(target, found)
            finally:
                os.close(target)
        finally:
            os.close(source)
        return True

    def _copy_part(self, source: int, target: int, start: int, end: int) -> None:
        self._spend(0)  # count empty parts, too, because a file may have very many
        while start < end:
            count = _copy_piece(source, target, start, min(PIECE, end - start))
            if not count:  # the file has become shorter
                return
            start += count
            self.copied.size += count
            self._spend(count)

    def _spend(self, size: int) -> None:
        """Count `size` bytes, or with 0 an entry or a part of a file. Raise TooLarge or DiskFull."""
        limits = self.limits
        if self.copied.size > limits.workspace_mb * MB or self.copied.entries > limits.workspace_files:
            raise TooLarge
        if time.monotonic() > self.until:
            raise TooLarge
        self.since_check += size or COST_OF_ENTRY
        if self.since_check > BYTES_PER_CHECK:
            self._check_disk()

    def _check_disk(self) -> None:
        self.since_check = 0
        if is_disk_full(self.target):
            raise DiskFull

    def _finish_folders(self) -> None:
        """Set the permissions and times of the folders. This is done last, because writing files changes the times."""
        with suppress(OSError):  # the folder does not exist, or has files that are not copies of attachments
            os.rmdir(self.target / ATTACHMENTS)
            self.made = [each for each in self.made if each[0] != ATTACHMENTS]
            self.copied.entries -= 1
        for path, found in self.made:
            with open_folder(self.target, path) as folder:
                _finish(folder, found)


def _parts_with_data(source: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the end of each part of a file with data, without the holes between them."""
    end = 0
    while end < size:
        try:
            start = os.lseek(source, end, os.SEEK_DATA)
            end = min(os.lseek(source, start, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno == errno.ENXIO:  # the rest of the file is a hole
                return
            raise
        yield start, end


def _copy_piece(source: int, target: int, start: int, size: int) -> int:
    """Copy at most `size` bytes of a file, by the file system if it supports this. Return the number of bytes."""
    try:
        return os.copy_file_range(source, target, size, start, start)
    except OSError as error:
        if error.errno not in CANNOT_COPY:
            raise
    return os.pwrite(target, os.pread(source, size, start), start)


def _finish(descriptor: int, found: os.stat_result) -> None:
    """Set the permissions, without special bits, and the times of the original on a copy of a file or folder."""
    os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & PERMISSIONS)
    with suppress(OSError, OverflowError):  # commands can set times that some systems do not accept
        os.utime(descriptor, ns=(found.st_atime_ns, found.st_mtime_ns))


def has_content(source: Path) -> bool:
    """Return whether a workspace has anything to copy. Blocks."""
    try:
        return any(name != ATTACHMENTS or _has_more_than_copies(source) for name in os.listdir(source))
    except OSError:  # no command has run yet
        return False


def _has_more_than_copies(source: Path) -> bool:
    try:
        with open_folder(source, ATTACHMENTS) as folder:
            names = os.listdir(folder)
            return not all(is_copy(os.stat(name, dir_fd=folder, follow_symlinks=False)) for name in names)
    except (NotThere, OSError):  # it is a link, or a copy has just been removed
        return True
