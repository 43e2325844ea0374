"""Safe ways to embed any text in Markdown: fences that the text cannot close, and escaped names."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

_RUN = re.compile(r"`{3,}")
_SPECIAL = re.compile(r"([\\\[\]`*_<>&!#|~])")
# The beginnings of blocks that can stay open to the end of a document: fences, and HTML such as comments.
_MAY_STAY_OPEN = re.compile(r"```|~~~|^[ >]*<", re.MULTILINE)
_LINE_END = re.compile(r"\r\n?|\n")
_blocks = MarkdownIt("commonmark").disable(["inline"])
_END = "the end"


def fenced(text: str, language: str = "") -> str:
    """Return a text in a fence that is longer than all fences in the text."""
    longest = max(map(len, _RUN.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def escaped(name: str) -> str:
    """Return a name on one line, escaped for Markdown."""
    return _SPECIAL.sub(r"\\\1", " ".join(name.split()))


def contained(text: str) -> str:
    """Return a text that does not affect the Markdown after it: unchanged, or quoted if it leaves a block open."""
    if not _MAY_STAY_OPEN.search(text) or _ends(text):
        return text
    return "\n".join(f"> {line}" if line else ">" for line in _LINE_END.split(text))


def _ends(text: str) -> bool:
    last = _blocks.parse(f"{text}\n\n{_END}")[-3:]
    return [token.type for token in last] == ["paragraph_open", "inline", "paragraph_close"] and (
        last[1].content == _END and last[0].level == 0
    )
