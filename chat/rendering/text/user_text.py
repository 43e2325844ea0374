"""User messages as HTML: addresses become links, code and mentions are marked, but no character is changed."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from html import escape

from django.utils.safestring import SafeString, mark_safe

from chat.mentions import NOT_INSIDE, NOT_LONGER
from chat.rendering.budget import LONGEST_STYLED
from chat.rendering.text import addresses
from chat.snapshots import MentionSnapshot

_FENCE = re.compile(r"^(`{3,}|~{3,})([^`\n]*)(?:\n|\Z)", re.MULTILINE)
_CODE = re.compile(r"(?<!`)(`{1,2})(?!`)([^`\n]+)\1(?!`)")
_LINK_ATTRIBUTES = 'target="_blank" rel="noopener noreferrer nofollow"'

Part = Callable[[str], str]


def user_text_html(text: str, mentions: Sequence[MentionSnapshot] = ()) -> SafeString:
    """Return HTML with exactly this text. After `LONGEST_STYLED` characters nothing is marked or linked."""
    head, rest = text[:LONGEST_STYLED], text[LONGEST_STYLED:]
    outside = partial(_with_code, _mention_marker(text, mentions))
    drawn = "".join(_split(head, _fenced(head), lambda part: f'<code class="fence">{escape(part)}</code>', outside))
    return mark_safe(drawn + escape(rest))  # noqa: S308  # every part is escaped


def _split(text: str, spans: Iterable[tuple[int, int]], inside: Part, outside: Part) -> Iterator[str]:
    """Convert the text in the spans with `inside` and the text between them with `outside`."""
    before = 0
    for start, end in spans:
        yield outside(text[before:start])
        yield inside(text[start:end])
        before = end
    yield outside(text[before:])


def _fenced(text: str) -> Iterator[tuple[int, int]]:
    """Yield where closed fences begin and end, in time linear in the length of the text."""
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


def _mention_marker(text: str, mentions: Sequence[MentionSnapshot]) -> Part:
    """Return what marks mentions in a part of the text without links."""
    people: dict[str, list[str]] = {}
    for each in mentions:
        people.setdefault(text[each.start : each.start + each.length], []).append(str(each.user_id))
    names = sorted((name for name in people if name), key=len, reverse=True)
    if not names:
        return escape
    pattern = re.compile(f"{NOT_INSIDE}(?:{'|'.join(map(re.escape, names))}){NOT_LONGER}")

    def marked(name: str) -> str:
        user_ids = " ".join(dict.fromkeys(people[name]))
        return f'<span class="mention" data-mentions="{user_ids}">{escape(name)}</span>'

    return lambda part: "".join(_split(part, (found.span() for found in pattern.finditer(part)), marked, escape))


def _with_code(marked: Part, text: str) -> str:
    code = (found.span() for found in _CODE.finditer(text))
    return "".join(_split(text, code, _code, partial(_linked, marked)))


def _code(part: str) -> str:
    """Mark code; its backticks stay in the text, and the page does not show them."""
    ticks = "``" if part.startswith("``") else "`"
    tick = f"<i>{ticks}</i>"
    return f"<code>{tick}{escape(part[len(ticks) : -len(ticks)])}{tick}</code>"


def _linked(marked: Part, text: str) -> str:
    html, before = [], 0
    for address in addresses.find(text):
        shown, url = escape(text[address.start : address.end]), escape(address.url)
        html += [marked(text[before : address.start]), f'<a href="{url}" {_LINK_ATTRIBUTES}>{shown}</a>']
        before = address.end
    return "".join([*html, marked(text[before:])])
