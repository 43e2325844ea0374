"""The text direction of a rendered block, as a browser determines it for `dir="auto"`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from unicodedata import bidirectional

# In characters of HTML. While Chromium parses an element with dir="auto", it searches for the first letter again after
# each child. This takes seconds for a long block whose letters are all in code, which has its own direction.
LONGEST_AUTO = 10_000
_NO_TEXT = re.compile(r'<code dir="ltr">.*?</code>|<[^>]*>|&#?\w+;', re.DOTALL)
_DIRECTIONS = {"L": "ltr", "R": "rtl", "AL": "rtl"}


def direction_of(html: str) -> str:
    """Return the value of `dir` for a block: "auto", or for a long block the direction of its first letter."""
    if len(html) <= LONGEST_AUTO:
        return "auto"
    found = (_DIRECTIONS.get(bidirectional(letter)) for text in _texts(html) for letter in text)
    return next(filter(None, found), "ltr")


def _texts(html: str) -> Iterator[str]:
    start = 0
    for other in _NO_TEXT.finditer(html):
        yield html[start : other.start()]
        start = other.end()
    yield html[start:]
