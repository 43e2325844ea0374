"""Markdown around texts that may hold anything: fences no text can close, names that stay names."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

_RUN = re.compile(r"`{3,}")
_SPECIAL = re.compile(r"([\\\[\]`*_<>&!#|~])")
# What can stay open to the end of a document: fences, comments, and HTML that has an end of its own.
_MAY_STAY_OPEN = re.compile(r"```|~~~|^[ >]*<", re.MULTILINE)
_LINE_END = re.compile(r"\r\n?|\n")
_blocks = MarkdownIt("commonmark").disable(["inline"])
_END = "the end"


def fenced(text: str, language: str = "") -> str:
    """Put a text between fences that are longer than any in it."""
    longest = max(map(len, _RUN.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def escaped(name: str) -> str:
    """Write a name, on one line, so that Markdown reads nothing into it."""
    return _SPECIAL.sub(r"\\\1", " ".join(name.split()))


def contained(text: str) -> str:
    """Write a text so that what follows it is not taken for a part of it: as it is, or quoted if it stays open."""
    if not _MAY_STAY_OPEN.search(text) or _ends(text):
        return text
    return "\n".join(f"> {line}" if line else ">" for line in _LINE_END.split(text))


def _ends(text: str) -> bool:
    last = _blocks.parse(f"{text}\n\n{_END}")[-3:]
    return [token.type for token in last] == ["paragraph_open", "inline", "paragraph_close"] and (
        last[1].content == _END and last[0].level == 0
    )
