"""Iterate over the values in a file: a JSON document, a list, JSON lines, or a ZIP archive that contains them."""

from __future__ import annotations

import lzma
import mmap
import re
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import count
from typing import IO, Any

from chat.transfer.parsing.archive import NO_ENTRIES, Budget, Entries
from chat.transfer.parsing.json_parts import Data, Unreadable, objects

__all__ = ["TooLargeToRead", "Unreadable", "UnreadableFile", "Value", "values_in"]

# A list may be split into several files.
_CONVERSATIONS = re.compile(r"(?:.*/)?conversations(?!_asset)[-_.\w]*\.json", re.IGNORECASE)
# A session in the archive of all data of a user (`chat/transfer/exporting/personal.py`). A user who has unpacked the
# archive may have packed its folder again.
_OWN_SESSION = re.compile(r"(?:[^/]+/)?(?P<deleted>deleted-)?sessions/[^/]+/session\.json")
# Files that macOS adds to archives for attributes of the other files.
_OF_MACOS = re.compile(r"(?:.*/)?(?:__MACOSX/.*|\._[^/]*)", re.DOTALL)
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
_MAX_ARCHIVE_END_LENGTH = 22 + 65_535


class NothingInside(Unreadable):
    """The archive contains no JSON."""


class TooLargeToRead(ValueError):  # describes the file
    """The file exceeds a limit. This may only be found after it is unpacked."""


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a file. `members` are its wanted members, or None if it is not an object or was not chosen.

    `index` counts the values of all files in an archive. `size` is in bytes. `is_listed`: it is one of several values,
    all of which should be conversations.
    """

    index: int
    members: dict[str, Any] | None
    size: int
    is_listed: bool
    entries: Entries


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    """A file in an archive that is damaged or not JSON, while the archive has others that may be readable."""

    name: str


@dataclass(frozen=True, slots=True)
class _JsonFile:
    """A JSON file. `data` is None if it cannot be unpacked. `is_named`: it has the name of a conversation file."""

    name: str
    data: Data | None
    is_named: bool
    entries: Entries


def values_in(
    file: IO[bytes], most: int, wanted: Collection[str], chosen: Collection[int] | None = None
) -> Iterator[Value | UnreadableFile]:
    """Yield the objects of a file, with only their `wanted` members. Only one value is built at a time.

    `most` is the limit for the unpacked file in bytes. With `chosen`, only values with these indexes are built. Raise
    Unreadable and TooLargeToRead.
    """
    file.seek(0)
    if file.read(4).startswith(b"PK"):
        yield from _values_of_archive(file, most, wanted, chosen)
        return
    file.seek(0)
    yield from _values(_JsonFile("", _map_file(file, most), False, NO_ENTRIES), 0, wanted, chosen)


def _values_of_archive(
    file: IO[bytes], most: int, wanted: Collection[str], chosen: Collection[int] | None
) -> Iterator[Value | UnreadableFile]:
    """Yield the values of all JSON files in an archive.

    An unreadable file is skipped, unless it has the name of a conversation file, or all files are unreadable.
    """
    first, is_any_read, is_any_skipped = 0, False, False
    for found in _unpack(file, Budget(most, most)):
        following = first
        try:
            for value in _values(found, first, wanted, chosen):
                following = value.index + 1
                yield value
            is_any_read = True
        except Unreadable:
            if found.is_named:
                raise
            is_any_skipped = True
            following = first + _count(found, wanted)
            yield UnreadableFile(found.name)
        first = following
    if is_any_skipped and not is_any_read:
        raise Unreadable


def _values(file: _JsonFile, first: int, wanted: Collection[str], chosen: Collection[int] | None) -> Iterator[Value]:
    """Yield the values of one file, of which the first one has the index `first`."""
    if file.data is None:
        raise Unreadable
    indexes = count(first)
    is_wanted = None if chosen is None else lambda: next(indexes) in chosen
    for index, found in enumerate(objects(_as_utf8(file.data), wanted, is_wanted), first):
        yield Value(index, found.members, found.size, file.is_named or found.is_listed, file.entries)


def _count(file: _JsonFile, wanted: Collection[str]) -> int:
    """Return the number of values in an unreadable file.

    Errors inside a value are only found if it is built. So the number must not depend on which values are chosen.
    """
    number = 0
    with suppress(Unreadable):
        for _ in _values(file, 0, wanted, ()):
            number += 1
    return number


def _map_file(file: IO[bytes], most: int) -> Data:
    """Return a file's content. A file on disk is mapped into memory instead of copied."""
    try:
        found = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # the file is in memory, or empty
        return _read_bounded(file, most)
    if len(found) > most:
        raise TooLargeToRead
    return found


def _unpack(file: IO[bytes], room: Budget, depth: int = 0) -> Iterator[_JsonFile]:
    """Yield each JSON file of an archive and of archives in it."""
    try:
        _require_short_directory(file)
        with zipfile.ZipFile(file) as archive:
            # Of entries with the same name, the last is read.
            names = [name for name in dict.fromkeys(archive.namelist()) if not _OF_MACOS.fullmatch(name)]
            if depth < MAX_ARCHIVE_DEPTH and not any(map(_names_conversations, names)):
                inner = sorted(name for name in names if name.lower().endswith(".zip"))
                for name in inner:
                    with archive.open(name) as entry:
                        found = BytesIO(_read_bounded(entry, room.json))
                    room.json -= len(found.getbuffer())
                    yield from _unpack_inner(found, room, depth + 1)
                if inner:
                    return
            entries = Entries(archive, room)
            for name, is_named in _wanted_files(names):
                yield _JsonFile(name, _read_entry(archive, name, room), is_named, entries)
    except _BROKEN_ZIP:
        raise Unreadable from None


def _read_entry(archive: zipfile.ZipFile, name: str, room: Budget) -> bytes | None:
    """Return the content of a file in an archive, or None if it is damaged or encrypted."""
    try:
        with archive.open(name) as entry:
            data = _read_bounded(entry, room.json)
    except _BROKEN_ZIP:
        return None
    room.json -= len(data)
    return data


def _unpack_inner(file: IO[bytes], room: Budget, depth: int) -> Iterator[_JsonFile]:
    """Unpack an inner archive. Ignore one without JSON, because privacy portals add such archives."""
    try:
        yield from _unpack(file, room, depth)
    except NothingInside:
        return


def _require_short_directory(file: IO[bytes]) -> None:
    """Raise TooLargeToRead for an archive with millions of entries, before they are listed."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _MAX_ARCHIVE_END_LENGTH))
    end = file.read()
    at = end.rfind(_ARCHIVE_END)
    if at >= 0 and len(end) >= at + 16 and struct.unpack_from("<L", end, at + 12)[0] > MAX_DIRECTORY:
        raise TooLargeToRead


def _names_conversations(name: str) -> bool:
    return bool(_CONVERSATIONS.fullmatch(name) or _OWN_SESSION.fullmatch(name))


def _wanted_files(names: list[str]) -> list[tuple[str, bool]]:
    """Return the names of the conversation files in an archive, or of all JSON files if there are none.

    Of an archive of all data of a user, only the sessions that are not deleted are wanted, because its other files are
    those of users and agents, under any name. Only the numbered parts of an export are sorted. Parley writes a session
    before its forks, which refer to it.
    """
    if own := list(filter(None, map(_OWN_SESSION.fullmatch, names))):
        return [(each[0], False) for each in own if not each["deleted"]]
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
