"""JSON that clients send, parsed without holding up the event loop or the interpreter, whatever is in it.

Parsing is one step for the interpreter, in which nothing else runs. A long text is one long string in an object, which
takes 2 ms per megabyte; a million small values would take fifty times that, and their memory. So what is long must be
an object of few members, none of which is long but strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]  # left out of the stubs
from typing import Any

# Up to so many characters anything is parsed.
SHORT = 200_000
MOST_MEMBERS = 1_000
# Patterns of JSON; `chat/transfer/parsing/json_parts.py` uses them for bytes.
SPACE = r"[ \t\r\n]*+"
# A string or a bracket. A string without an end reaches to the end of the text: a search that began again after each
# of its quotes would take minutes.
MARK = r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]'
PLAIN = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null"
_SPACE, _MARK, _PLAIN = re.compile(SPACE), re.compile(MARK, re.DOTALL), re.compile(PLAIN)


def loads(data: str | bytes) -> Any:
    """Parse JSON. Raises ValueError, also for what is long and not such an object, and RecursionError."""
    text = data if isinstance(data, str) else data.decode(json.detect_encoding(data), "surrogatepass")
    if len(text) <= SHORT:
        return json.loads(text)
    found = {}
    for count, (key, value) in enumerate(_members(text)):
        if count >= MOST_MEMBERS:
            raise ValueError("so long an object may not have so many members")
        found[key] = value
    return found


def _members(text: str) -> Iterator[tuple[str, Any]]:
    at = _after_space(text, 0)
    if text[at : at + 1] != "{":
        raise ValueError("so long a text must be an object")
    while True:
        at = _after_space(text, at + 1)
        if text[at : at + 1] != '"':
            raise ValueError("a member must have a name")
        key, at = scanstring(text, at + 1)
        at = _after_space(text, at)
        if text[at : at + 1] != ":":
            raise ValueError("a member must have a value")
        value, at = _value(text, _after_space(text, at + 1))
        yield key, value
        at = _after_space(text, at)
        if text[at : at + 1] == "}":
            break
        if text[at : at + 1] != ",":
            raise ValueError("members must have a comma between them")
    if _after_space(text, at + 1) != len(text):
        raise ValueError("something follows the object")


def _value(text: str, at: int) -> tuple[Any, int]:
    if text[at : at + 1] == '"':
        value: str
        value, at = scanstring(text, at + 1)
        return value, at
    end = _end(text, at)
    return json.loads(text[at:end]), end


def _end(text: str, at: int) -> int:
    """Return where a value ends that is no string."""
    depth = 0
    for mark in _MARK.finditer(text, at, at + SHORT) if text[at : at + 1] in ("[", "{") else ():
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark[0], 0)
        if not depth:
            return mark.end()
    found = _PLAIN.match(text, at)
    if found is None:
        raise ValueError("a value is missing, or too long")
    return found.end()


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
