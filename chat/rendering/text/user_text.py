"""What a person wrote, shown exactly as it is: addresses are links, code stands out, not a character is changed."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from html import escape

from django.utils.safestring import SafeString, mark_safe

from chat.rendering.budget import LONGEST_STYLED
from chat.rendering.text import addresses

_FENCE = re.compile(r"^(`{3,}|~{3,})([^`\n]*)(?:\n|\Z)", re.MULTILINE)
_CODE = re.compile(r"(?<!`)(`{1,2})(?!`)([^`\n]+)\1(?!`)")
_LINK_ATTRIBUTES = 'target="_blank" rel="noopener noreferrer nofollow"'

Part = Callable[[str], str]


def user_text_html(text: str) -> SafeString:
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
    html, before = [], 0
    for address in addresses.find(text):
        shown, url = escape(text[address.start : address.end]), escape(address.url)
        html += [escape(text[before : address.start]), f'<a href="{url}" {_LINK_ATTRIBUTES}>{shown}</a>']
        before = address.end
    return "".join([*html, escape(text[before:])])


def _found(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    return (found.span() for found in pattern.finditer(text))


def _fence(text: str) -> str:
    return f'<code class="fence">{escape(text)}</code>'


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"
