"""Web addresses in plain text: where they start and end, and the URL of a link to them.

User messages and Markdown use the same rules. linkify-it-py is not used: it takes minutes for 200 KB of `https://a/"`
in a row, links file names such as `main.py`, and does not stop at Chinese punctuation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# Characters that end an address.
_ENDS = r"\s<>\"'`“”«»、。，；：？！（）「」【】《》"
_ADDRESS = re.compile(
    rf"(?<![A-Za-z0-9_.@/-])(?<!blob:)(?:[hH][tT][tT][pP][sS]?://(?=[\w\[])|[wW]{{3}}\.(?=\w))[^{_ENDS}]+"
)
_HOST = re.compile(r"www(?:\.[\w-]+){2,}", re.IGNORECASE)
# A text without one of these has no address.
MARK = re.compile(r"://|www\.", re.IGNORECASE)
_END = re.compile(f"[{_ENDS}]")
# Most addresses have fewer characters.
_NEAR = 256
_TRAILING = ".,;:!?*_~"
_PAIRS = {")": "(", "]": "[", "}": "{"}


class Address(NamedTuple):
    """An address from `start` to `end` of a text, and the URL of its link."""

    start: int
    end: int
    url: str


def find(text: str) -> Iterator[Address]:
    """Yield the http, https and www. addresses of a text, in order, in time linear in its length."""
    for found in _ADDRESS.finditer(text):
        address = found[0][: _length(found[0])]
        is_bare = address[0] in "wW"
        if not is_bare or _HOST.match(address):
            yield Address(found.start(), found.start() + len(address), f"https://{address}" if is_bare else address)


def _length(address: str) -> int:
    """Return the length without trailing punctuation, and without closing brackets that the address does not open."""
    surplus = {closing: address.count(closing) - address.count(opening) for closing, opening in _PAIRS.items()}
    end = len(address)
    while address[end - 1] in _TRAILING or surplus.get(address[end - 1], 0) > 0:
        end -= 1
        if address[end] in surplus:
            surplus[address[end]] -= 1
    return end


def may_continue(text: str, delta: str) -> bool:
    """Return whether appended text may belong to an address that starts in `text` or in `delta`."""
    for part in (text[-_NEAR:], text):
        end = _END.search(part[::-1])
        if end or len(part) == len(text):
            break
    run = part[len(part) - end.start() :] if end else part
    return MARK.search(run + delta) is not None
