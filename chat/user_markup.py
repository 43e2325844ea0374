"""Find the parts of a user's text that are not plain words: fences, inline code and web addresses. Pure.

The page marks them, and names in them are not mentions.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator

from chat import addresses

_FENCE = re.compile(r"^(`{3,}|~{3,})([^`\n]*)(?:\n|\Z)", re.MULTILINE)
_CODE = re.compile(r"(?<!`)(`{1,2})(?!`)([^`\n]+)\1(?!`)")

Span = tuple[int, int]


def fences(text: str) -> Iterator[Span]:
    """Yield the start and end of closed fences, in time linear in the length of the text."""
    found = list(_FENCE.finditer(text))
    closing = defaultdict[str, deque[re.Match[str]]](deque)
    for fence in found:
        if not fence[2].strip(" \t"):
            closing[fence[1]].append(fence)
    end = 0
    for fence in found:
        ends = closing[fence[1]]
        while ends and ends[0].start() <= fence.start():
            ends.popleft()
        if fence.start() >= end and ends:
            end = ends[0].end()
            yield fence.start(), end


def inline_code(text: str) -> Iterator[Span]:
    """Yield the start and end of code in backticks, in a text without fences."""
    return (found.span() for found in _CODE.finditer(text))


def plain_parts(text: str) -> Iterator[Span]:
    """Yield the start and end of the parts that are neither code nor an address."""
    for start, end in _between(text, 0, fences(text)):
        for inner, inner_end in _between(text[start:end], start, inline_code(text[start:end])):
            links = ((link.start, link.end) for link in addresses.find(text[inner:inner_end]))
            yield from _between(text[inner:inner_end], inner, links)


def _between(part: str, offset: int, spans: Iterator[Span]) -> Iterator[Span]:
    """Yield the parts around the spans of a part, as positions in the whole text. The part begins there at `offset`."""
    before = 0
    for start, end in spans:
        if start > before:
            yield offset + before, offset + start
        before = end
    if before < len(part):
        yield offset + before, offset + len(part)
