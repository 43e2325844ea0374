"""Web addresses written as plain text: where they begin and end, and where a link to one leads.

The same rule holds for people's messages and for Markdown. linkify-it-py was measured and not taken: it needs minutes
for 200 KB of `https://a/"` in a row, links file names such as `main.py`, and does not end at Chinese punctuation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# What no address holds: one ends here, and a growing text can have no address across it.
_ENDS = r"\s<>\"'`“”«»、。，；：？！（）「」【】《》"
_ADDRESS = re.compile(
    rf"(?<![A-Za-z0-9_.@/-])(?<!blob:)(?:[hH][tT][tT][pP][sS]?://(?=[\w\[])|[wW]{{3}}\.(?=\w))[^{_ENDS}]+"
)
_HOST = re.compile(r"www(?:\.[\w-]+){2,}", re.IGNORECASE)
# Text without one of these holds no address.
MARK = re.compile(r"://|www\.", re.IGNORECASE)
_END = re.compile(f"[{_ENDS}]")
# Most runs end within so many characters.
_NEAR = 256
_TRAILING = ".,;:!?*_~"
_PAIRS = {")": "(", "]": "[", "}": "{"}


class Address(NamedTuple):
    """An address at `start` to `end` of a text, and where a link to it leads."""

    start: int
    end: int
    url: str


def find(text: str) -> Iterator[Address]:
    """Find the http, https and www. addresses of a text, in order, in time linear in its length."""
    for found in _ADDRESS.finditer(text):
        address = found[0][: _length(found[0])]
        is_bare = address[0] in "wW"
        if not is_bare or _HOST.match(address):
            yield Address(found.start(), found.start() + len(address), f"https://{address}" if is_bare else address)


def _length(address: str) -> int:
    """Leave out the punctuation after an address, and a closing bracket that was opened before it."""
    surplus = {closing: address.count(closing) - address.count(opening) for closing, opening in _PAIRS.items()}
    end = len(address)
    while address[end - 1] in _TRAILING or surplus.get(address[end - 1], 0) > 0:
        end -= 1
        if address[end] in surplus:
            surplus[address[end]] -= 1
    return end


def may_continue(text: str, delta: str) -> bool:
    """Tell whether what is appended to a text may belong to an address that began in it, or begins in what is added."""
    for part in (text[-_NEAR:], text):
        end = _END.search(part[::-1])
        if end or len(part) == len(text):
            break
    run = part[len(part) - end.start() :] if end else part
    return MARK.search(run + delta) is not None
