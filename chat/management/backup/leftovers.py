"""Delete what commands that were killed have left in a folder."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def working_in(folder: Path, *patterns: str) -> Iterator[None]:
    """Say that a command writes to a folder. What fits the patterns is deleted first, unless another command writes.

    The kernel ends the lock with the process. On a file system without locks nothing is deleted.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # BlockingIOError: another command writes to it
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for pattern in patterns:
                for path in folder.glob(pattern):
                    _delete(path)
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
