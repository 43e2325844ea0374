"""Parse JSON of clients without blocking the event loop or the interpreter for long, whatever the JSON contains.

Parsing is one step of the interpreter, in which nothing else runs. A few long strings in an object take 2 ms per
megabyte, but a million small values would take fifty times as long, and as much memory. So a long text must be an
object, and its long values must be strings, or objects or arrays with few members to which the same rule applies.
"""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]  # left out of the stubs
from typing import Any

# Texts of up to this many characters are parsed in any case.
SHORT = 200_000
# The most members of all long objects and arrays together, and how deep these may be nested, because each level is
# searched for its end.
MAX_MEMBERS = 1_000
DEPTH = 8
# Patterns of JSON; `chat/transfer/parsing/json_parts.py` uses them for bytes.
SPACE = r"[ \t\r\n]*+"
# A string or a bracket. A string without an end extends to the end of the text, because a search that began again after
# each of its quotes would take minutes.
MARK = r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]'
PLAIN = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null"
_SPACE, _MARK, _PLAIN = re.compile(SPACE), re.compile(MARK, re.DOTALL), re.compile(PLAIN)


class TooManyLongValues(ValueError):
    """The text may be JSON, but its long values are not a few strings."""


def loads(data: str | bytes) -> Any:
    """Parse JSON. Raise ValueError and RecursionError, and TooManyLongValues for long texts of another form."""
    text = data if isinstance(data, str) else data.decode(json.detect_encoding(data), "surrogatepass")
    if len(text) <= SHORT:
        return json.loads(text)
    at = _after_space(text, 0)
    if text[at : at + 1] != "{":
        raise TooManyLongValues("so long a text must be an object")
    found, at = _Long(text).container(at, DEPTH)
    if _after_space(text, at) != len(text):
        raise ValueError("something follows the object")
    return found


class _Long:
    """A parser of long objects and arrays that parses one member after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._left = MAX_MEMBERS

    def container(self, at: int, depth: int) -> tuple[Any, int]:
        """Parse the object or array that begins here. Return it and the position after it."""
        if not depth:
            raise TooManyLongValues("long values are in each other too deep")
        closing = "}" if self._text[at] == "{" else "]"
        members: list[tuple[str, Any]] = []
        following = ","
        while following == ",":
            self._left -= 1
            if self._left < 0:
                raise TooManyLongValues("long values have too many members")
            key, at = self._key(_after_space(self._text, at + 1)) if closing == "}" else ("", at + 1)
            value, at = self._value(_after_space(self._text, at), depth)
            members.append((key, value))
            at = _after_space(self._text, at)
            following = self._text[at : at + 1]
        if following != closing:
            raise ValueError("members must have a comma between them")
        return dict(members) if closing == "}" else [value for _key, value in members], at + 1

    def _key(self, at: int) -> tuple[str, int]:
        """Parse a name and the colon after it. Return the name and the position after the colon."""
        if self._text[at : at + 1] != '"':
            raise ValueError("a member must have a name")
        key, at = scanstring(self._text, at + 1)
        at = _after_space(self._text, at)
        if self._text[at : at + 1] != ":":
            raise ValueError("a member must have a value")
        return key, at + 1

    def _value(self, at: int, depth: int) -> tuple[Any, int]:
        opening = self._text[at : at + 1]
        if opening == '"':
            value: str
            value, at = scanstring(self._text, at + 1)
            return value, at
        end = _end(self._text, at)
        if end is None:
            return self.container(at, depth - 1)
        return json.loads(self._text[at:end]), end


def _end(text: str, at: int) -> int | None:
    """Return the position after a value that is not a string, or None for a long object or array."""
    if text[at : at + 1] in ("[", "{"):
        depth = 0
        for mark in _MARK.finditer(text, at, at + SHORT):
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark[0], 0)
            if not depth:
                return mark.end()
        return None
    found = _PLAIN.match(text, at)
    if found is None:
        raise ValueError("a value is missing")
    return found.end()


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
