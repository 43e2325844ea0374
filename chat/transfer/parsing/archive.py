"""Find attachments in an archive by the ids and names that messages use for them."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from agents.safe_text import clean

# File names such as `file-AbC-cat.png`, `file_00ab-cat.png` and `file_00ab.dat`: the id, then sometimes a name.
_ID = re.compile(r"(file[-_][A-Za-z0-9]+)(?![A-Za-z0-9])[-_]?(.*)")
# Newer ChatGPT archives have a list of original file names.
NAMES = "conversation_asset_file_names.json"
MAX_NAMES_BYTES = 5_000_000


@dataclass(slots=True)
class Budget:
    """The bytes of JSON and of other files that may still be unpacked, from an archive and the archives in it."""

    json: int = 0
    files: int = 0


class Entries:
    """The attachments in one archive."""

    def __init__(self, archive: zipfile.ZipFile | None = None, room: Budget | None = None) -> None:
        self._archive = archive
        self._room = room or Budget()
        self._names: Mapping[str, str] = {}
        self._by_id: dict[str, str] = {}
        self._by_name: dict[str, str] = {}
        for entry in archive.namelist() if archive else ():
            name = PurePosixPath(entry).name
            self._by_name.setdefault(name, entry)
            if found := _ID.match(name):
                self._by_id.setdefault(found[1], entry)
        if archive is not None and NAMES in self._by_name:
            self._names = _read_names(archive, self._by_name[NAMES])

    def find(self, file_id: str, name: str = "") -> str:
        """Return the entry of the file with this id or, if there is none, with this name; else ""."""
        return self._by_id.get(file_id) or self._by_name.get(file_id) or self._by_name.get(name) or ""

    def name_of(self, entry: str) -> str:
        """Return the name that a file had before the export, if the archive contains it."""
        name = PurePosixPath(entry).name
        if known := self._names.get(name):
            return PurePosixPath(known).name or name
        found = _ID.match(name)
        return found[2] if found and "." in found[2].lstrip(".") else name

    def read(self, entry: str, largest: int) -> bytes:
        """Return a file's bytes. They are empty if it is too large, damaged, or exceeds the budget of the archive."""
        if self._archive is None:
            return b""
        most = min(largest, self._room.files)
        try:
            with self._archive.open(entry) as file:
                data = file.read(most + 1)
        except Exception:  # damaged in one of many ways, encrypted, or missing
            return b""
        if len(data) > most:
            return b""
        self._room.files -= len(data)
        return data


NO_ENTRIES = Entries()


def _read_names(archive: zipfile.ZipFile, entry: str) -> Mapping[str, str]:
    try:
        with archive.open(entry) as file:
            found = json.loads(file.read(MAX_NAMES_BYTES))
    except Exception:  # damaged, or not JSON: files keep the names that they have in the archive
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {key: clean(name) for key, name in pairs if isinstance(name, str)}
