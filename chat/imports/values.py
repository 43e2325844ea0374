"""The values in a file: of one document, of a list of them, or of those in a ZIP archive; one after the other."""

from __future__ import annotations

import lzma
import mmap
import re
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator
from typing import IO, Any

from chat.imports.json_parts import Data, Unreadable, objects

__all__ = ["TooMuch", "Unreadable", "values_in"]

# One list may be split into several files.
_CONVERSATIONS = re.compile(r"(?:.*/)?conversations[-_.\w]*\.json", re.IGNORECASE)
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
# What an archive says of its entries may take so many bytes: some 50,000 of them.
MOST_DIRECTORY = 5_000_000
_ARCHIVE_END = b"PK\x05\x06"
_LONGEST_ARCHIVE_END = 22 + 65_535


class TooMuch(ValueError):  # noqa: N818  # an answer about a file, not a failure of ours
    """More than is taken in at once, perhaps only once it is unpacked."""


def values_in(file: IO[bytes], most: int, wanted: Collection[str]) -> Iterator[dict[str, Any] | None]:
    """Read what stands in a file: the objects in its list, or its one, each with its `wanted` members; None for others.

    `most` is in bytes, unpacked. Raises Unreadable, TooMuch. Only one value is built at a time.
    """
    file.seek(0)
    if file.read(4).startswith(b"PK"):
        for data in _unpacked(file, most):
            yield from objects(_as_utf8(data), wanted)
        return
    file.seek(0)
    yield from objects(_as_utf8(_mapped(file, most)), wanted)


def _mapped(file: IO[bytes], most: int) -> Data:
    """Read a file; one of the operating system is not copied."""
    try:
        found = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # it is in memory, or empty
        return _bounded(file, most)
    if len(found) > most:
        raise TooMuch
    return found


def _unpacked(file: IO[bytes], most: int) -> Iterator[bytes]:
    try:
        _require_short_directory(file)
        with zipfile.ZipFile(file) as archive:
            for name in _wanted_files(archive.namelist()):
                with archive.open(name) as entry:
                    data = _bounded(entry, most)
                most -= len(data)
                yield data
    except _BROKEN_ZIP:
        raise Unreadable from None


def _require_short_directory(file: IO[bytes]) -> None:
    """Refuse an archive of millions of entries before they are listed. Raises TooMuch."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _LONGEST_ARCHIVE_END))
    end = file.read()
    at = end.rfind(_ARCHIVE_END)
    if at >= 0 and len(end) >= at + 16 and struct.unpack_from("<L", end, at + 12)[0] > MOST_DIRECTORY:
        raise TooMuch


def _wanted_files(names: list[str]) -> list[str]:
    """The conversations in an archive, or else all JSON in it."""
    found = [name for name in names if _CONVERSATIONS.fullmatch(name)]
    found = found or [name for name in names if name.lower().endswith(".json")]
    if not found:
        raise Unreadable
    return sorted(found)


def _bounded(file: IO[bytes], most: int) -> bytes:
    data = file.read(most + 1)
    if len(data) > most:
        raise TooMuch
    return data


def _as_utf8(data: Data) -> Data:
    head = data[:3]
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        try:
            return data[:].decode("utf-16").encode()
        except UnicodeError:
            raise Unreadable from None
    return data[3:] if head == b"\xef\xbb\xbf" else data
