"""JSON that clients send, parsed without holding up the event loop or the interpreter, whatever is in it.

Parsing is one step for the interpreter, in which nothing else runs. A long text is a few long strings in an object,
which take 2 ms per megabyte; a million small values would take fifty times that, and their memory. So what is long must
be an object, and what is long in it a string, or an object or an array of few members for which that holds again.
"""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]  # left out of the stubs
from typing import Any

# Up to so many characters anything is parsed.
SHORT = 200_000
# Of all long objects and arrays together, and how deep these may be in each other: each level is searched for its end.
MOST_MEMBERS = 1_000
DEPTH = 8
# Patterns of JSON; `chat/transfer/parsing/json_parts.py` uses them for bytes.
SPACE = r"[ \t\r\n]*+"
# A string or a bracket. A string without an end reaches to the end of the text: a search that began again after each
# of its quotes would take minutes.
MARK = r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]'
PLAIN = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null"
_SPACE, _MARK, _PLAIN = re.compile(SPACE), re.compile(MARK, re.DOTALL), re.compile(PLAIN)


class TooManyLongValues(ValueError):
    """The text may be JSON, but what is long in it is not a few strings."""


def loads(data: str | bytes) -> Any:
    """Parse JSON. Raises ValueError and RecursionError, and TooManyLongValues for other long texts than those above."""
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
    """Reads long objects and arrays, one member after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._left = MOST_MEMBERS

    def container(self, at: int, depth: int) -> tuple[Any, int]:
        """Read the object or array that begins here; return it and where it ends."""
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
        """Read a name and the colon behind it."""
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
    """Return where a value ends that is no string; None for a long object or array."""
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
