"""Estimates of tokens without a tokenizer. They are fast and work for all models."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from agents.messages import File, Part, Text, Thinking, ToolCall, ToolResult
from agents.tools import Tool

# In English and code, a token has about four characters. In other scripts, it has about three bytes of UTF-8, which is
# one character of Chinese, Japanese or Korean.
ASCII_PER_TOKEN = 4
BYTES_PER_TOKEN = 3
# The tokens that a vendor's format adds to a message, and to a call or its result.
AROUND = 4
AROUND_CALL = 12
# Anthropic's count for pictures. Vendors shrink pictures to this length, in pixels, before a model reads them.
PIXELS_PER_TOKEN = 750
MAX_EDGE = 1568
PER_PAGE = 2000
_SIZE = re.compile(r"(\d+)×(\d+)")
_PAGES = re.compile(r"\d+")


def of_text(text: str) -> float:
    """Return the tokens of a text."""
    if text.isascii():
        return len(text) / ASCII_PER_TOKEN
    ascii_bytes = len(text.encode("ascii", "ignore"))
    other = len(text.encode("utf-8", "surrogatepass")) - ascii_bytes
    return ascii_bytes / ASCII_PER_TOKEN + other / BYTES_PER_TOKEN


def of_part(part: Part) -> float:
    """Return the tokens of a part of a message."""
    match part:
        case Text(text) | Thinking(text):
            return of_text(text)
        case ToolCall(_, name, arguments, raw):
            return AROUND_CALL + of_text(name) + of_text(raw or json.dumps(arguments, ensure_ascii=False))
        case ToolResult(_, content):
            return AROUND_CALL + of_text(content)
        case File():
            return _of_file(part)


def of_tools(tools: Iterable[Tool]) -> float:
    """Return the tokens of tool descriptions."""
    return sum(
        AROUND_CALL + of_text(tool.name) + of_text(tool.description) + of_text(json.dumps(tool.parameters))
        for tool in tools
    )


def _of_file(file: File) -> float:
    if file.kind == "pdf":
        pages = _PAGES.match(file.about)
        return PER_PAGE * (int(pages[0]) if pages else 1)
    size = _SIZE.match(file.about)
    width, height = (int(size[1]), int(size[2])) if size else (MAX_EDGE, MAX_EDGE)
    shrunk = min(1.0, MAX_EDGE / max(width, height, 1))
    return width * height * shrunk**2 / PIXELS_PER_TOKEN
