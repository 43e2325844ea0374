"""JSON of strangers, read in parts: wanted values are built one by one, all others are skipped without being built."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from mmap import mmap
from typing import Any, NoReturn

Data = bytes | mmap

_SPACE = re.compile(rb"[ \t\r\n]*+")
# Between the values of a list; a comma too many does no harm.
_GAP = re.compile(rb"[ \t\r\n,]*+")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_PLAIN = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null")
_MARK = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
_OPENING, _CLOSING = b"[{", b"]}"


class Unreadable(ValueError):  # noqa: N818  # an answer about a file, not a failure of ours
    """It is not JSON, and not an archive with JSON in it."""


def objects(data: Data, wanted: Collection[str]) -> Iterator[dict[str, Any] | None]:
    """Yield the values of a list, or the one value that there is: an object's `wanted` members, None for anything else.

    Raises Unreadable, perhaps after some values.
    """
    at = _after(_GAP, data, 0)
    is_list = data[at : at + 1] == b"["
    at += is_list
    while (at := _after(_GAP, data, at)) < len(data) and data[at : at + 1] != b"]":
        if data[at : at + 1] == b"{":
            found: dict[str, Any] | None
            found, at = _object(data, at, wanted)
        else:
            found, at = None, _end(data, at)
        yield found
        if not is_list:
            break
    if _after(_GAP, data, at + is_list) < len(data) or (is_list and data[at : at + 1] != b"]"):
        raise Unreadable


def _object(data: Data, at: int, wanted: Collection[str]) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    for key, start, end in _members(data, at):
        if key is None:
            return found, end
        if key in wanted:
            found[key] = _built_in_parts(data, start, end)
    raise Unreadable


def _built_in_parts(data: Data, start: int, end: int) -> Any:
    """Build a value; a list's or an object's items one by one, so that no second copy of all of them is needed."""
    kind = data[start : start + 1]
    if kind == b"[":
        return [_built(data, *place) for place in _items(data, start)]
    if kind == b"{":
        return {key: _built(data, first, last) for key, first, last in _members(data, start) if key is not None}
    return _built(data, start, end)


def _members(data: Data, at: int) -> Iterator[tuple[str | None, int, int]]:
    """Yield the key of each member of an object and where its value is; at last None and the object's end."""
    at = _after(_SPACE, data, at + 1)
    if data[at : at + 1] == b"}":
        yield None, at, at + 1
        return
    while True:
        key = _STRING.match(data, at)
        if key is None:
            raise Unreadable
        at = _after(_SPACE, data, key.end())
        if data[at : at + 1] != b":":
            raise Unreadable
        start = _after(_SPACE, data, at + 1)
        end = _end(data, start)
        yield _built(data, *key.span()), start, end
        at = _after(_SPACE, data, end)
        if data[at : at + 1] == b"}":
            yield None, at, at + 1
            return
        if data[at : at + 1] != b",":
            raise Unreadable
        at = _after(_SPACE, data, at + 1)


def _items(data: Data, at: int) -> Iterator[tuple[int, int]]:
    """Yield where each item of a list is."""
    at = _after(_SPACE, data, at + 1)
    while data[at : at + 1] != b"]":
        end = _end(data, at)
        yield at, end
        at = _after(_SPACE, data, end)
        if data[at : at + 1] == b",":
            at = _after(_SPACE, data, at + 1)
        elif data[at : at + 1] != b"]":
            raise Unreadable


def _end(data: Data, at: int) -> int:
    """Return where the value that begins here ends. What is skipped is only looked through for its brackets."""
    if data[at : at + 1] not in (b"[", b"{"):
        found = _STRING.match(data, at) or _PLAIN.match(data, at)
        if found is None:
            raise Unreadable
        return found.end()
    depth = 0
    for mark in _MARK.finditer(data, at):
        first = data[mark.start()]
        if first in _OPENING:
            depth += 1
        elif first in _CLOSING:
            depth -= 1
            if not depth:
                return mark.end()
    raise Unreadable


def _built(data: Data, start: int, end: int) -> Any:
    try:
        return json.loads(data[start:end].decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Unreadable from None


def _after(gap: re.Pattern[bytes], data: Data, at: int) -> int:
    found = gap.match(data, at)
    return found.end() if found else at


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)
