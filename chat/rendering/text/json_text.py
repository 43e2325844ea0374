"""Indent and color JSON for display. Every token stays as it was written."""

from __future__ import annotations

import json
import re
from html import escape

from django.utils.safestring import SafeString, mark_safe

from chat.rendering.budget import MAX_STYLED_LENGTH

INDENT = "  "
# With deeper nesting, there would be more indentation than text.
MAX_DEPTH = 40
# The most characters of line ends and indentation: a fixed number, plus a multiple of the text's length.
MAX_INDENTATION = 10_000
MAX_TIMES = 5

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
# An unclosed string ends with its line, so that text that only resembles JSON takes linear time.
_COLORS = re.compile(r'("(?:[^"\\\n]|\\.)*(?:"|\\?$))(\s*:)?|\b(true|false|null)\b|(-?\b\d[\w.+-]*)', re.MULTILINE)
_OPENING, _CLOSING = ("{", "["), ("}", "]")


def indent_json(text: str) -> str:
    """Indent JSON. Return other text unchanged, and also JSON that is too long or nested too deeply."""
    if text[:1] not in _OPENING or len(text) > MAX_STYLED_LENGTH:
        return text
    try:
        json.loads(text, parse_int=str, parse_float=str)  # only checks the syntax
    except (ValueError, RecursionError):
        return text
    return _indent(text) or text


def colored(text: str) -> SafeString:
    """Return JSON as HTML, with the classes of highlighted code for names, strings, numbers and words."""
    return mark_safe(_COLORS.sub(_span, escape(text, quote=False)))  # noqa: S308  # escaped, then only our spans


def _span(match: re.Match[str]) -> str:
    string, colon, word, number = match.groups()
    if string:
        return f'<span class="{"nt" if colon else "s"}">{string}</span>{colon or ""}'
    return f'<span class="{"kc" if word else "m"}">{word or number}</span>'


def _indent(text: str) -> str:
    parts: list[str] = []
    depth, before = 0, ""
    room = MAX_INDENTATION + MAX_TIMES * len(text)
    for word in _TOKEN.findall(text):
        depth -= word in _CLOSING
        begins_line = before not in _OPENING if word in _CLOSING else before in (*_OPENING, ",")
        parts.append("\n" + INDENT * depth if begins_line else "")
        room -= len(parts[-1])
        parts.append(": " if word == ":" else word)
        depth += word in _OPENING
        if depth > MAX_DEPTH or room < 0:
            return ""
        before = word
    return "".join(parts)
