"""Iterate over the values in a file: a JSON document, a list, JSON lines, or a ZIP archive that contains them."""

from __future__ import annotations

import lzma
import mmap
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import count
from typing import IO, Any

from chat.transfer.parsing.archive import NO_ENTRIES, Budget, Entries
from chat.transfer.parsing.json_parts import Data, Unreadable, objects

__all__ = ["TooLargeToRead", "Unreadable", "Value", "values_in"]

# A list may be split into several files.
_CONVERSATIONS = re.compile(r"(?:.*/)?conversations(?!_asset)[-_.\w]*\.json", re.IGNORECASE)
_BROKEN_ZIP = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OSError,
    UnicodeError,
    zlib.error,
    lzma.LZMAError,
)
# OpenAI's privacy portal exports an archive of archives.
MAX_ARCHIVE_DEPTH = 2
# The maximum size of an archive's central directory in bytes. It is enough for about 50,000 entries.
MAX_DIRECTORY = 5_000_000
_ARCHIVE_END = b"PK\x05\x06"
_LONGEST_ARCHIVE_END = 22 + 65_535


class NothingInside(Unreadable):
    """The archive contains no JSON."""


class TooLargeToRead(ValueError):  # describes the file
    """The file exceeds a limit. This may only be found after it is unpacked."""


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a file. `members` are its wanted members, or None if it is not an object or was not chosen.

    `size` is in bytes. `is_listed`: it is one of several values, all of which should be conversations.
    """

    members: dict[str, Any] | None
    size: int
    is_listed: bool
    entries: Entries


def values_in(
    file: IO[bytes], most: int, wanted: Collection[str], chosen: Collection[int] | None = None
) -> Iterator[Value]:
    """Yield the objects of a file, with only their `wanted` members. Only one value is built at a time.

    `most` is the limit for the unpacked file in bytes. With `chosen`, only values with these indexes are built. Raise
    Unreadable and TooLargeToRead.
    """
    indexes = count()
    is_wanted = None if chosen is None else lambda: next(indexes) in chosen
    file.seek(0)
    if file.read(4).startswith(b"PK"):
        for data, is_conversations, entries in _unpack(file, Budget(most, most)):
            yield from _values(data, wanted, is_wanted, entries, is_listed=is_conversations)
        return
    file.seek(0)
    yield from _values(_map_file(file, most), wanted, is_wanted, NO_ENTRIES, is_listed=False)


def _values(
    data: Data, wanted: Collection[str], is_wanted: Callable[[], bool] | None, entries: Entries, *, is_listed: bool
) -> Iterator[Value]:
    for found in objects(_as_utf8(data), wanted, is_wanted):
        yield Value(found.members, found.size, is_listed or found.is_listed, entries)


def _map_file(file: IO[bytes], most: int) -> Data:
    """Return a file's content. A file on disk is mapped into memory instead of copied."""
    try:
        found = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # the file is in memory, or empty
        return _read_bounded(file, most)
    if len(found) > most:
        raise TooLargeToRead
    return found


def _unpack(file: IO[bytes], room: Budget, depth: int = 0) -> Iterator[tuple[bytes, bool, Entries]]:
    """Yield each JSON file of an archive and of archives in it, and whether it has the name of a conversation file."""
    try:
        _require_short_directory(file)
        with zipfile.ZipFile(file) as archive:
            names = list(dict.fromkeys(archive.namelist()))  # of entries with the same name, the last is read
            if depth < MAX_ARCHIVE_DEPTH and not any(map(_CONVERSATIONS.fullmatch, names)):
                inner = sorted(name for name in names if name.lower().endswith(".zip"))
                for name in inner:
                    with archive.open(name) as entry:
                        found = BytesIO(_read_bounded(entry, room.json))
                    room.json -= len(found.getbuffer())
                    yield from _unpack_inner(found, room, depth + 1)
                if inner:
                    return
            entries = Entries(archive, room)
            for name, is_conversations in _wanted_files(names):
                with archive.open(name) as entry:
                    data = _read_bounded(entry, room.json)
                room.json -= len(data)
                yield data, is_conversations, entries
    except _BROKEN_ZIP:
        raise Unreadable from None


def _unpack_inner(file: IO[bytes], room: Budget, depth: int) -> Iterator[tuple[bytes, bool, Entries]]:
    """Unpack an inner archive. Ignore one without JSON, because privacy portals add such archives."""
    try:
        yield from _unpack(file, room, depth)
    except NothingInside:
        return


def _require_short_directory(file: IO[bytes]) -> None:
    """Raise TooLargeToRead for an archive with millions of entries, before they are listed."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _LONGEST_ARCHIVE_END))
    end = file.read()
    at = end.rfind(_ARCHIVE_END)
    if at >= 0 and len(end) >= at + 16 and struct.unpack_from("<L", end, at + 12)[0] > MAX_DIRECTORY:
        raise TooLargeToRead


def _wanted_files(names: list[str]) -> list[tuple[str, bool]]:
    """Return the names of the conversation files in an archive, or of all JSON files if there are none.

    Only the numbered parts of an export are sorted. Parley writes a session before its forks, which refer to it.
    """
    found = [name for name in names if _CONVERSATIONS.fullmatch(name)]
    others = [name for name in names if name.lower().endswith((".json", ".jsonl"))]
    if not found and not others:
        raise NothingInside
    return [(name, bool(found)) for name in (sorted(found) or others)]


def _read_bounded(file: IO[bytes], most: int) -> bytes:
    data = file.read(most + 1)
    if len(data) > most:
        raise TooLargeToRead
    return data


def _as_utf8(data: Data) -> Data:
    head = data[:3]
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        try:
            return data[:].decode("utf-16").encode()
        except UnicodeError:
            raise Unreadable from None
    return data[3:] if head == b"\xef\xbb\xbf" else data
