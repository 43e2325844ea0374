"""The JSON values in a file: of one document, of a list of them, or of those in a ZIP archive; one after the other."""

from __future__ import annotations

import json
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any, NoReturn

# One list may be split into several files.
_CONVERSATIONS = re.compile(r"(?:.*/)?conversations[-_.\w]*\.json", re.IGNORECASE)
_GAP = re.compile(r"[\s,]*")
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


class Unreadable(ValueError):  # noqa: N818  # an answer about a file, not a failure of ours
    """It is no JSON, and no archive with JSON in it."""


class TooMuch(ValueError):  # noqa: N818  # likewise
    """More than is taken in at once, perhaps only once it is unpacked."""


def values_in(file: IO[bytes], most: int) -> Iterator[Any]:
    """Read what stands in a file: the elements of its list, or its one value. `most` is in bytes, unpacked.

    Raises Unreadable, TooMuch. Only one value is built at a time.
    """
    file.seek(0)
    archive = file.read(4).startswith(b"PK")
    file.seek(0)
    for data in _unpacked(file, most) if archive else [_bounded(file, most)]:
        yield from _values(_text(data))


def _unpacked(file: IO[bytes], most: int) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(file) as archive:
            for name in _wanted(archive.namelist()):
                with archive.open(name) as entry:
                    data = _bounded(entry, most)
                most -= len(data)
                yield data
    except _BROKEN_ZIP:
        raise Unreadable from None


def _wanted(names: list[str]) -> list[str]:
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


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable from None


def _values(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder(parse_constant=_no_number)
    at = _after_gap(text, 0)
    is_list = text[at : at + 1] == "["
    at += is_list
    try:
        while (at := _after_gap(text, at)) < len(text) and text[at] != "]":
            value, at = decoder.raw_decode(text, at)
            yield value
            if not is_list:
                break
    except (ValueError, RecursionError):
        raise Unreadable from None
    if _after_gap(text, at + is_list) < len(text) or (is_list and text[at : at + 1] != "]"):
        raise Unreadable


def _after_gap(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)
