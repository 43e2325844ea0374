"""Web addresses in plain text: where they start and end, and the URL of a link to them.

User messages and Markdown use the same rules. linkify-it-py is not used: it takes minutes for 200 KB of `https://a/"`
in a row, links file names such as `main.py`, and does not stop at Chinese punctuation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

# Characters that end an address. Invisible characters could hide where it leads.
_ENDS = (
    r"\s<>\"'`‘’“”«»—…｜～、。，；：？！（）「」『』【】〔〕《》〈〉\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
)
# Letters, digits and marks of all scripts. A host has no punctuation, arrows or pictures.
_LETTERS = (
    r"A-Za-z0-9\u00c0-\u1fff\u2c00-\u2dff\u2e80-\u2fff\u3005-\u3007\u3041-\u30fa\u30fc-\ud7ff\uf900-\ufdff"
    r"\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uffdc\U00010000-\U0001efff\U00020000-\U0003ffff"
)
_LABEL = rf"[{_LETTERS}_-]++"
# No top-level domain continues in another script after ASCII letters, so that is text after the address. It may contain
# dots, as in https://example.com或www.example.org. Only the first label of a host may be mixed.
_LAST_LABEL = rf"(?:[A-Za-z0-9-]++(?=[\u0370-\u1dff\u1f00-\U0010ffff])|{_LABEL})"
_MIXED = r"[A-Za-z0-9-]++[\u0370-\u1dff\u1f00-\U0010ffff]"
_NEXT = rf"\.(?=[{_LETTERS}])"
_HOST = rf"(?:(?:{_LABEL}{_NEXT})?(?:(?!{_MIXED}){_LABEL}{_NEXT})*{_LAST_LABEL}|\[[0-9A-Fa-f:.]++\])"
_USER = r"(?:[A-Za-z0-9._~!$&()*+,;=:%-]++@)?"
_ADDRESS = re.compile(
    rf"(?<![A-Za-z0-9_.@/-])(?<!blob:)(?:[hH][tT][tT][pP][sS]?://{_USER}(?=[\w\[])|(?=[wW]{{3}}\.\w))"
    rf"{_HOST}(?::[0-9]++)?(?:[/?#][^{_ENDS}]*+)?"
)
# After these, the rest of a host or a port is missing, as in https://api.{region}.example.com.
_UNFINISHED = re.compile(r"[.:-]*[{$@]")
_BARE_HOST = re.compile(r"www(?:\.[\w-]+){2,}", re.IGNORECASE)
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
        url = f"https://{address}" if is_bare else address
        if _UNFINISHED.match(text, found.end()) or (is_bare and not _BARE_HOST.match(address)) or not _is_valid(url):
            continue
        yield Address(found.start(), found.start() + len(address), url)


def _is_valid(url: str) -> bool:
    """Return whether the URL has a valid host and port."""
    try:
        urlsplit(url).port  # noqa: B018 - raises an error if it is invalid
    except ValueError:
        return False
    return True


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
