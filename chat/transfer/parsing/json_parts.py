"""Read untrusted JSON in parts: build wanted values one by one, and skip all others without building them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Generator, Iterator
from dataclasses import dataclass
from mmap import mmap
from typing import Any, NoReturn

from chat.long_json import MARK, PLAIN, SPACE

Data = bytes | mmap

_SPACE = re.compile(SPACE.encode())
# Between the values of a list; extra commas are accepted.
_GAP = re.compile(rb"[ \t\r\n,]*+")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_PLAIN = re.compile(PLAIN.encode())
_MARK = re.compile(MARK.encode(), re.DOTALL)
_TOKEN = re.compile(rb'[ \t\r\n]*+(?:("(?:[^"\\]++|\\.)*+"|[^\s"\[\]{},:]++)|([\[{])|([\]}])|([,:]))', re.DOTALL)
# The valid contents of brackets. s stands for a string, v for any other value.
_SHAPES = {b"[]": re.compile(r"(?:[sv](?:,[sv])*+)?"), b"{}": re.compile(r"(?:s:[sv](?:,s:[sv])*+)?")}
_OPENING, _CLOSING = b"[{", b"]}"
# Some exports are an object that contains the list of conversations.
CONTAINER = "conversations"
# Some exports nest each message in the one that it answers, with two levels per message.
TREE = "messagesTree"
# An object with one of these keys is itself a conversation.
_OF_CONVERSATIONS = frozenset(["format", "mapping", "chat_messages", "messages", "chat"])


class Unreadable(ValueError):  # describes the file
    """The file is neither JSON nor an archive with JSON."""


@dataclass(frozen=True, slots=True)
class Part:
    """A value. `members` are the wanted members of an object, or None for anything else. `size` is in bytes."""

    members: dict[str, Any] | None
    size: int
    is_listed: bool


def objects(data: Data, wanted: Collection[str], is_wanted: Callable[[], bool] | None = None) -> Iterator[Part]:
    """Yield the values of a list, of the list in an object's CONTAINER, or of JSON lines.

    `is_wanted` is called before each value to decide whether it is built. Without it, all are built. Raise Unreadable,
    possibly after some values.
    """
    at = _after(_GAP, data, 0)
    if data[at : at + 1] == b"[":
        at = yield from _list_values(data, at, wanted, is_wanted)
    elif (container := _container(data, at)) is not None:
        start, at = container
        yield from _list_values(data, start, wanted, is_wanted)
    else:
        is_more = at < len(data)
        while is_more:
            part, at = _part(data, at, wanted, is_wanted, is_listed=False)
            yield part
            at = _after(_SPACE, data, at)
            is_more = data[at : at + 1] == b"{"
    if _after(_GAP, data, at) < len(data):
        raise Unreadable


def _list_values(
    data: Data, at: int, wanted: Collection[str], is_wanted: Callable[[], bool] | None
) -> Generator[Part, None, int]:
    """Yield the values of the list that starts at `at`. Return the index after its end."""
    at = _after(_GAP, data, at + 1)
    while at < len(data) and data[at : at + 1] != b"]":
        part, at = _part(data, at, wanted, is_wanted, is_listed=True)
        yield part
        at = _after(_GAP, data, at)
    if data[at : at + 1] != b"]":
        raise Unreadable
    return at + 1


def _part(
    data: Data, at: int, wanted: Collection[str], is_wanted: Callable[[], bool] | None, *, is_listed: bool
) -> tuple[Part, int]:
    found: dict[str, Any] | None = None
    is_built = is_wanted is None or is_wanted()
    if is_built and data[at : at + 1] == b"{":
        found, end = _object(data, at, wanted)
    else:
        end = _end(data, at)
    return Part(found, end - at, is_listed), end


def _container(data: Data, at: int) -> tuple[int, int] | None:
    """Return the start of the list in an object's CONTAINER and the end of the object, or None if there is none."""
    if data[at : at + 1] != b"{":
        return None
    place = None
    for key, start, end in _members(data, at):
        if key is None:
            return None if place is None else (place, end)
        if key == CONTAINER and data[start : start + 1] == b"[":
            place = start
        elif key in _OF_CONVERSATIONS:
            return None
    return None


def _object(data: Data, at: int, wanted: Collection[str]) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    for key, start, end in _members(data, at):
        if key is None:
            return found, end
        if key in wanted:
            build = _built_flat if key == TREE else _built_in_parts
            found[key] = build(data, start, end)
    raise Unreadable


def _built_in_parts(data: Data, start: int, end: int) -> Any:
    """Build a value. The items of a list or object are built one by one, to avoid a second copy of all of them."""
    kind = data[start : start + 1]
    if kind == b"[":
        return [_build(data, *place) for place in _items(data, start)]
    if kind == b"{":
        return {key: _build(data, first, last) for key, first, last in _members(data, start) if key is not None}
    return _build(data, start, end)


def _members(data: Data, at: int) -> Iterator[tuple[str | None, int, int]]:
    """Yield each member of an object: its key and the bounds of its value. Finally yield None and the object's end."""
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
        yield _build(data, *key.span()), start, end
        at = _after(_SPACE, data, end)
        if data[at : at + 1] == b"}":
            yield None, at, at + 1
            return
        if data[at : at + 1] != b",":
            raise Unreadable
        at = _after(_SPACE, data, at + 1)


def _items(data: Data, at: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of each item of a list."""
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
    """Return the end of the value that starts at `at`. Only the brackets of skipped values are scanned."""
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


def _build(data: Data, start: int, end: int) -> Any:
    try:
        return json.loads(data[start:end].decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Unreadable from None


def _built_flat(data: Data, start: int, end: int) -> Any:
    """Build a value of any depth. Python's parser recurses at each level, and fails after some hundred."""
    stack: list[tuple[bytes, list[str], list[Any]]] = [(b"", [], [])]
    while start < end:
        token = _TOKEN.match(data, start, end)
        if token is None:
            raise Unreadable
        scalar, opening, closing, separator = token.groups()
        if scalar is not None:
            _put(stack[-1], _build(data, *token.span(1)))
        elif opening is not None:
            stack.append((opening, [], []))
        elif separator is not None:
            stack[-1][1].append(separator.decode())
        else:
            kind, shape, values = stack.pop()
            if kind + closing not in _SHAPES or not _SHAPES[kind + closing].fullmatch("".join(shape)):
                raise Unreadable
            _put(stack[-1], values if kind == b"[" else dict(zip(values[::2], values[1::2], strict=True)))
        start = token.end()
    return stack[0][2][0]


def _put(container: tuple[bytes, list[str], list[Any]], value: Any) -> None:
    _, shape, values = container
    shape.append("s" if isinstance(value, str) else "v")
    values.append(value)


def _after(gap: re.Pattern[bytes], data: Data, at: int) -> int:
    found = gap.match(data, at)
    return found.end() if found else at


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)
