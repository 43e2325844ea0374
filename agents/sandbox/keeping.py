"""Store the result of a tool as a file of the workspace, without following links that commands have put there."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from agents.sandbox.command import Sandbox
from agents.sandbox.folder import FOLDER, NEW_FILE, give_away, make_folder
from agents.sandbox.process import has_room

READABLE = 0o644
MAX_STEM_LENGTH = 60
MAX_TRIES = 1_000


def keep_file(sandbox: Sandbox, folder: str, stem: str, ending: str, data: bytes) -> str | None:
    """Write a new file to a folder of the workspace and return its path there. Blocks. Raise OSError.

    Its name is the stem with the first free number. Return None if the workspace or the disk is full.
    """
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-")[:MAX_STEM_LENGTH] or "file"
    make_folder(sandbox.workspace)
    if not has_room(sandbox, len(data)):
        return None
    inside = os.open(sandbox.workspace, FOLDER)
    try:
        with suppress(FileExistsError):
            os.mkdir(folder, 0o755, dir_fd=inside)
            give_away(folder, inside)
        place = os.open(folder, FOLDER, dir_fd=inside)
    finally:
        os.close(inside)
    try:
        for number in range(1, MAX_TRIES):
            name = f"{stem}-{number}{ending}"
            with suppress(FileExistsError):
                _write(place, name, data)
                return f"{folder}/{name}"
    finally:
        os.close(place)
    raise FileExistsError(f"{folder}/{stem}")


def _write(place: int, name: str, data: bytes) -> None:
    with os.fdopen(os.open(name, NEW_FILE, READABLE, dir_fd=place), "wb") as file:
        file.write(data)
    give_away(name, place)
