"""What a person wrote, shown exactly as it is: addresses are links, code stands out, not a character is changed."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from html import escape

from django.utils.safestring import SafeString, mark_safe

from chat.rendering.budget import LONGEST_STYLED

_FENCE = re.compile(r"^(`{3,}|~{3,})([^`\n]*)(?:\n|\Z)", re.MULTILINE)
_CODE = re.compile(r"(?<!`)(`{1,2})(?!`)([^`\n]+)\1(?!`)")
_LINK = re.compile(r"https?://[^\s<>\"'`“”«»、。，；：？！（）「」【】《》]+", re.IGNORECASE)
_TRAILING = ".,;:!?*_~"
_PAIRS = {")": "(", "]": "[", "}": "{"}

Part = Callable[[str], str]


def dressed(text: str) -> SafeString:
    """Make HTML whose text is the given one; beyond a length nothing in it stands out."""
    head, rest = text[:LONGEST_STYLED], text[LONGEST_STYLED:]
    drawn = "".join(_split(head, _fenced(head), _fence, _outside))
    return mark_safe(drawn + escape(rest))  # noqa: S308  # every part is escaped


def _split(text: str, spans: Iterable[tuple[int, int]], inside: Part, outside: Part) -> Iterator[str]:
    """Hand what lies in the spans to one function and what lies between to another."""
    before = 0
    for start, end in spans:
        yield outside(text[before:start])
        yield inside(text[start:end])
        before = end
    yield outside(text[before:])


def _fenced(text: str) -> Iterator[tuple[int, int]]:
    """Where fenced code begins and ends; what nothing closes is none. However many there are, they are sought once."""
    fences = list(_FENCE.finditer(text))
    closing = defaultdict[str, deque[re.Match[str]]](deque)
    for fence in fences:
        if not fence[2].strip(" \t"):
            closing[fence[1]].append(fence)
    end = 0
    for fence in fences:
        ends = closing[fence[1]]
        while ends and ends[0].start() <= fence.start():
            ends.popleft()
        if fence.start() >= end and ends:
            end = ends[0].end()
            yield fence.start(), end


def _outside(text: str) -> str:
    return "".join(_split(text, _found(_CODE, text), _code, _linked))


def _linked(text: str) -> str:
    return "".join(_split(text, _found(_LINK, text), _link, escape))


def _found(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    return (found.span() for found in pattern.finditer(text))


def _fence(text: str) -> str:
    return f'<code class="fence">{escape(text)}</code>'


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _link(address: str) -> str:
    """Link to an address; the full stop behind it, and a bracket that was opened before it, are not its own."""
    url, rest = escape(address[: (end := _end_of(address))]), escape(address[end:])
    return f'<a href="{url}" target="_blank" rel="noopener noreferrer nofollow">{url}</a>{rest}'


def _end_of(address: str) -> int:
    surplus = {closing: address.count(closing) - address.count(opening) for closing, opening in _PAIRS.items()}
    end = len(address)
    while address[end - 1] in _TRAILING or surplus.get(address[end - 1], 0) > 0:
        end -= 1
        if address[end] in surplus:
            surplus[address[end]] -= 1
    return end
