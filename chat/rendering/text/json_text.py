"""JSON for reading: where lines break changes and tokens have colours, but each stays as it was written."""

from __future__ import annotations

import json
import re
from html import escape

from django.utils.safestring import SafeString, mark_safe

from chat.rendering.budget import LONGEST_STYLED

INDENT = "  "
# Deeper than this, the indentation would be more than the text.
DEEPEST = 40
# Line ends and indentation may come to this, and to so many times the text.
MOST_INDENTATION = 10_000
MOST_TIMES = 5

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
# A string that nothing closes ends with its line: text that only looks like JSON is not sought through again and again.
_COLOURS = re.compile(r'("(?:[^"\\\n]|\\.)*(?:"|\\?$))(\s*:)?|\b(true|false|null)\b|(-?\b\d[\w.+-]*)', re.MULTILINE)
_OPENING, _CLOSING = ("{", "["), ("}", "]")


def laid_out(text: str) -> str:
    """Break JSON into lines; anything else, and what is too long or nested too deeply, comes back as it is."""
    if text[:1] not in _OPENING or len(text) > LONGEST_STYLED:
        return text
    try:
        json.loads(text, parse_int=str, parse_float=str)  # of numbers, the words alone are of interest
    except (ValueError, RecursionError):
        return text
    return _indented(text) or text


def coloured(text: str) -> SafeString:
    """Write JSON with the classes of highlighted code: names, strings, numbers, words."""
    return mark_safe(_COLOURS.sub(_span, escape(text, quote=False)))  # noqa: S308  # escaped, then only our spans


def _span(match: re.Match[str]) -> str:
    string, colon, word, number = match.groups()
    if string:
        return f'<span class="{"nt" if colon else "s"}">{string}</span>{colon or ""}'
    return f'<span class="{"kc" if word else "m"}">{word or number}</span>'


def _indented(text: str) -> str:
    parts: list[str] = []
    depth, before = 0, ""
    room = MOST_INDENTATION + MOST_TIMES * len(text)
    for word in _TOKEN.findall(text):
        depth -= word in _CLOSING
        begins_line = before not in _OPENING if word in _CLOSING else before in (*_OPENING, ",")
        parts.append("\n" + INDENT * depth if begins_line else "")
        room -= len(parts[-1])
        parts.append(": " if word == ":" else word)
        depth += word in _OPENING
        if depth > DEEPEST or room < 0:
            return ""
        before = word
    return "".join(parts)
