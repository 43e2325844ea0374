"""Measurements of a sandbox: the size of its folder, and the memory of its processes."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# Deeper folders are not measured. A folder with such folders counts as too large.
MAX_DEPTH = 200
BLOCK = 512
_MEMORY = re.compile(r"^(?:RssAnon|RssShmem|VmSwap):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FolderUsage:
    """The size of a folder in bytes on disk and in entries. If measuring stopped early, at least one is over its limit.

    `newest` is the time of the last change, in nanoseconds since 1970. `is_measured` is False if a folder in it cannot
    be read or is nested too deeply.
    """

    size: int
    entries: int
    newest: int = 0
    is_measured: bool = True


def folder_usage(folder: Path, *, most_bytes: int, most_entries: int, of_copy: bool = False) -> FolderUsage:
    """Measure a folder without following links, and stop when it is over a limit. Blocks.

    The size of a file with several hard links is counted once. A folder that is nested too deeply or cannot be read
    counts as over the limits. With `of_copy`, measure a copy, in which each hard link is a file of its own, and folders
    that cannot be read are missing.
    """
    unmeasured = FolderUsage(most_bytes + 1, most_entries + 1, is_measured=False)
    size = entries = newest = 0
    linked: set[tuple[int, int]] = set()
    folders = [(str(folder), 0)]
    while folders and size <= most_bytes and entries <= most_entries:
        path, depth = folders.pop()
        try:
            for entry in _entries(path):
                entries += 1
                with suppress(FileNotFoundError):
                    found = entry.stat(follow_symlinks=False)
                    newest = max(newest, found.st_ctime_ns)
                    if stat.S_ISDIR(found.st_mode):
                        folders.append((entry.path, depth + 1))
                    file = (found.st_dev, found.st_ino)
                    if file not in linked:
                        size += found.st_blocks * BLOCK
                    if found.st_nlink > 1 and not of_copy:
                        linked.add(file)
                if entries > most_entries or size > most_bytes:
                    break
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            if of_copy:
                continue
            return unmeasured
        if depth > MAX_DEPTH:
            return unmeasured
    return FolderUsage(size, entries, newest)


def _entries(path: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(path) as entries:
        yield from entries


def memory_of(pid: int) -> int:
    """Return the bytes of memory that a process and its descendants use, without mapped files. Blocks for milliseconds.

    Memory that processes share is counted for each of them.
    """
    total, pids = 0, [pid]
    while pids:
        process = Path("/proc") / str(pids.pop())
        with suppress(OSError):  # the process has ended
            total += sum(map(int, _MEMORY.findall((process / "status").read_text())))
            for task in (process / "task").iterdir():
                with suppress(OSError):
                    pids.extend(map(int, (task / "children").read_text().split()))
    return total * 1024
