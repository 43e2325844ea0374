"""Delete files that killed commands have left in a folder."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def working_in(folder: Path, *patterns: str) -> Iterator[None]:
    """Mark a folder as used by this command. First delete files that match the patterns, unless others use it.

    The mark is a lock, which the kernel ends with the process. On a file system without locks, nothing is deleted.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # BlockingIOError: another command uses the folder
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
