"""Folders that a command makes for its work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from config.data_folder import OWNER_ONLY_FOLDER


@contextmanager
def made(path: Path) -> Iterator[None]:
    """Make a folder and its parents. At the end, remove those of them that were missing and are still empty."""
    missing = [folder for folder in (*reversed(path.parents), path) if not folder.exists()]
    try:
        for folder in missing:
            folder.mkdir(mode=OWNER_ONLY_FOLDER, exist_ok=True)
        yield
    finally:
        for folder in reversed(missing):
            with suppress(OSError):  # it is not empty
                folder.rmdir()
