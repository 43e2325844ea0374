"""User messages as HTML. Addresses become links, code and mentions are marked, and no character is changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from html import escape

from django.utils.safestring import SafeString, mark_safe

from chat import addresses, user_markup
from chat.mentions import NOT_INSIDE, NOT_LONGER
from chat.rendering.budget import MAX_STYLED_LENGTH
from chat.snapshots import AgentMentionSnapshot, MentionSnapshot

_LINK_ATTRIBUTES = 'target="_blank" rel="noopener noreferrer nofollow"'

Part = Callable[[str], str]


def user_text_html(
    text: str, mentions: Sequence[MentionSnapshot] = (), agents: Sequence[AgentMentionSnapshot] = ()
) -> SafeString:
    """Return HTML with exactly this text. After `MAX_STYLED_LENGTH` characters, nothing is marked or linked."""
    head, rest = text[:MAX_STYLED_LENGTH], text[MAX_STYLED_LENGTH:]
    with_links = partial(_with_links, _mention_marker(text, mentions, agents))

    def outside_fences(part: str) -> str:
        return "".join(_split(part, user_markup.inline_code(part), _code, with_links))

    drawn = "".join(_split(head, user_markup.fences(head), _fence, outside_fences))
    return mark_safe(drawn + escape(rest))  # noqa: S308  # every part is escaped


def _split(text: str, spans: Iterable[tuple[int, int]], inside: Part, outside: Part) -> Iterator[str]:
    """Convert the text in the spans with `inside` and the text between them with `outside`."""
    before = 0
    for start, end in spans:
        yield outside(text[before:start])
        yield inside(text[start:end])
        before = end
    yield outside(text[before:])


def _mention_marker(text: str, mentions: Sequence[MentionSnapshot], agents: Sequence[AgentMentionSnapshot]) -> Part:
    """Return a function that marks mentions in a part of the text without links."""
    people: dict[str, list[str]] = {}
    for each in mentions:
        people.setdefault(text[each.start : each.start + each.length], []).append(str(each.user_id))
    called = {text[each.start : each.start + each.length] for each in agents}
    # If the text has been erased, there is other text in these places.
    names = sorted((name for name in {*people, *called} if name.startswith("@")), key=len, reverse=True)
    if not names:
        return escape
    pattern = re.compile(f"{NOT_INSIDE}(?:{'|'.join(map(re.escape, names))}){NOT_LONGER}")

    def marked(name: str) -> str:
        if name not in people:
            return f'<span class="mention">{escape(name)}</span>'
        user_ids = " ".join(dict.fromkeys(people[name]))
        return f'<span class="mention" data-mentions="{user_ids}">{escape(name)}</span>'

    return lambda part: "".join(_split(part, (found.span() for found in pattern.finditer(part)), marked, escape))


def _fence(part: str) -> str:
    return f'<code class="fence">{escape(part)}</code>'


def _code(part: str) -> str:
    """Mark code. Its backticks stay in the text, but the page does not show them."""
    ticks = "``" if part.startswith("``") else "`"
    tick = f"<i>{ticks}</i>"
    return f"<code>{tick}{escape(part[len(ticks) : -len(ticks)])}{tick}</code>"


def _with_links(marked: Part, text: str) -> str:
    """Return a text without code as HTML with links. `marked` converts the text between them."""
    html, before = [], 0
    for address in addresses.find(text):
        shown, url = escape(text[address.start : address.end]), escape(address.url)
        html += [marked(text[before : address.start]), f'<a href="{url}" {_LINK_ATTRIBUTES}>{shown}</a>']
        before = address.end
    return "".join([*html, marked(text[before:])])
