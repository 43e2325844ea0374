"""Finished Markdown as safe HTML, block by block: what a page shows, and what a stream ends as.

The HTML holds no picture from elsewhere and no address but http, https and mailto. `![alt](url)` becomes a link
`<a class="ext-img" href="url">alt</a>`, since showing it would call out to a stranger's server (CSP: img-src 'self').
"""

import logging
from collections.abc import Sequence

from markdown_it.token import Token

from chat.rendering import engine
from chat.rendering.cache import BlockCache
from chat.rendering.engine import Drawing
from chat.rendering.sanitize import clean, escape
from chat.rendering.source import normalise

log = logging.getLogger(__name__)
_PLAIN = '<pre class="plain">'
_cache = BlockCache(limit=32_000_000)


def render(text: str) -> str:
    """Return the safe HTML of a finished text, each top-level block in `<div class="block">`."""
    return "".join(f'<div class="block">{block}</div>' for block in blocks(text))


def blocks(text: str) -> tuple[str, ...]:
    """Return the safe HTML of each top-level block of a finished text (MSG-12: whatever the text holds)."""
    known = _cache.get(text)
    if known is None:
        known = draw_all(normalise(text))
        remember(text, known)
    return known


def remember(text: str, drawn: tuple[str, ...]) -> None:
    """Keep the blocks of a text, so that a page after a stream need not draw it again."""
    _cache.put(text, drawn)


def draw_all(source: str) -> tuple[str, ...]:
    """Draw normalised source, past every cache."""
    references: engine.References = {}
    try:
        tokens = engine.parse(source, references)
    except Exception:
        log.exception("Markdown of %d characters could not be parsed", len(source))
        return (plain(source),)
    lines = source.split("\n")
    drawing = Drawing(references, final=True)
    return tuple(draw_block(block, lines, drawing) for block in engine.top_level(tokens))


def draw_block(tokens: Sequence[Token], lines: Sequence[str], drawing: Drawing) -> str:
    """Draw one top-level block, or its source if it cannot be drawn; `lines` are those that the tokens count."""
    try:
        return clean(engine.draw(tokens, drawing)).rstrip("\n")
    except Exception as error:  # the libraries below can fail on odd input in many ways; the text must still be seen
        start, end = tokens[0].map or (0, len(lines))
        if drawing.final:
            log.warning("A Markdown block of %d lines is shown as source: %r", end - start, error)
        return plain("\n".join(lines[start:end]))


def plain(source: str) -> str:
    """Return the source itself as a block."""
    return f"{_PLAIN}<code>{escape(source.strip(chr(10)))}</code></pre>"


def is_plain(block: str) -> bool:
    """Tell whether a block is shown as its source."""
    return block.startswith(_PLAIN)
