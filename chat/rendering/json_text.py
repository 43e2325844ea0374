"""JSON laid out for reading: where lines break changes, every token stays as it was written."""

from __future__ import annotations

import json
import re

INDENT = "  "
# Deeper than this, the indentation would be more than the text.
DEEPEST = 40

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_OPENING, _CLOSING = ("{", "["), ("}", "]")


def laid_out(text: str) -> str:
    """Break JSON into lines; anything else, and what is nested too deeply to be read, comes back as it is."""
    if text[:1] not in _OPENING:
        return text
    try:
        json.loads(text, parse_int=str, parse_float=str)  # of numbers, the words alone are of interest
    except (ValueError, RecursionError):
        return text
    return _indented(text) or text


def _indented(text: str) -> str:
    parts: list[str] = []
    depth, before = 0, ""
    for word in _TOKEN.findall(text):
        depth -= word in _CLOSING
        begins_line = before not in _OPENING if word in _CLOSING else before in (*_OPENING, ",")
        parts.append("\n" + INDENT * depth if begins_line else "")
        parts.append(": " if word == ":" else word)
        depth += word in _OPENING
        if depth > DEEPEST:
            return ""
        before = word
    return "".join(parts)
