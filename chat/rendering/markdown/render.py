"""Finished Markdown as safe HTML: what a page shows, and what a stream ends as.

The HTML holds no picture from elsewhere and no address but http, https and mailto. `![alt](url)` becomes a link
`<a class="ext-img" href="url">alt</a>`, since showing it would call out to a stranger's server (CSP: img-src 'self').

What takes little is drawn where it is asked for, the rest in other processes within limits; what reaches these limits
is shown as source.
"""

import logging

from agents.process_pool import Limits, ProcessPool, WorkFailed
from chat.rendering.budget import IN_THREAD, LONGEST_MARKDOWN, ON_LOOP, Allowance, TooDear, end_of_markdown
from chat.rendering.markdown import external_images
from chat.rendering.markdown.blocks import draw_all
from chat.rendering.markdown.cache import BlockCache
from chat.rendering.markdown.source import normalise, plain_blocks

__all__ = ["blocks", "draw", "draw_all", "draw_soon", "remember", "render"]

log = logging.getLogger(__name__)
# A text that is longer goes to another process at once; with the most common Markdown it takes some 30 ms.
LONGEST_HERE = 20_000
# A text that reaches one of these limits will do so again; otherwise its drawing is tried again.
LASTING = ("cpu", "memory", "output", "time")

_cache = BlockCache(limit=32_000_000)
# Two, so that one hostile text does not hold up all others. They keep what they have imported, which takes 0.3 s.
_processes = ProcessPool(
    "chat.rendering.markdown.child",
    Limits(cpu_seconds=1.0, seconds=10.0, memory_mb=256, output_bytes=10_000_000, queue_seconds=5.0),
    size=2,
    keep_seconds=60.0,
)


def render(text: str) -> str:
    """Return the safe HTML of a finished text, each block in `<div class="block">`. Not for the event loop."""
    return in_blocks(blocks(text))


def in_blocks(drawn: tuple[str, ...]) -> str:
    """Put drawn blocks together as a page shows them."""
    return "".join(f'<div class="block">{block}</div>' for block in drawn)


def blocks(text: str) -> tuple[str, ...]:
    """Return the safe HTML of each top-level block of a finished text (MSG-12: whatever the text holds).

    Not for the event loop: it waits for another process where drawing takes long.
    """
    head, rest = _split(text)
    drawn = _quickly(head, IN_THREAD)
    if drawn is None:
        try:
            drawn = _taken(head, _processes.run("draw", external_images.key(), normalise(head)))
        except WorkFailed as failed:
            drawn = _shown_as_source(head, failed)
    return drawn + rest


async def draw(text: str) -> tuple[str, ...]:
    """Return what `blocks` does, for coroutines; cancelling it ends the work."""
    head, rest = _split(text)
    drawn = _quickly(head, ON_LOOP)
    if drawn is None:
        try:
            drawn = _taken(head, await _processes.run_async("draw", external_images.key(), normalise(head)))
        except WorkFailed as failed:
            drawn = _shown_as_source(head, failed)
    return drawn + rest


def draw_soon(text: str) -> tuple[str, ...] | None:
    """Return the blocks of a text if they are known or drawn quickly enough for the event loop; else None."""
    return _quickly(text, ON_LOOP) if len(text) <= LONGEST_MARKDOWN else None


def remember(text: str, drawn: tuple[str, ...]) -> None:
    """Keep the blocks of a text, so that a page after a stream need not draw it again."""
    if len(text) <= LONGEST_MARKDOWN:
        _cache.put(text, drawn)


def _split(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the Markdown of a text, and the blocks that show the rest of a very long one."""
    if len(text) <= LONGEST_MARKDOWN:
        return text, ()
    source = normalise(text)
    end = end_of_markdown(source)
    return (text, ()) if end is None else (source[:end], plain_blocks(source[end:]))


def _quickly(head: str, allowance: Allowance) -> tuple[str, ...] | None:
    drawn = _cache.get(head)
    if drawn is None and len(head) <= LONGEST_HERE:
        try:
            drawn = draw_all(normalise(head), allowance)
        except TooDear:
            return None
        _cache.put(head, drawn)
    return drawn


def _taken(head: str, pieces: list[bytes]) -> tuple[str, ...]:
    # Near a limit one of two drawings at the same time can fail and the other succeed: pages show the first result.
    return _cache.put_once(head, tuple(piece.decode() for piece in pieces))


def _shown_as_source(head: str, failed: WorkFailed) -> tuple[str, ...]:
    log.warning("Markdown of %d characters is shown as source: %s", len(head), failed)
    drawn = plain_blocks(normalise(head))
    return _cache.put_once(head, drawn) if failed.reason in LASTING else _cache.get(head) or drawn
