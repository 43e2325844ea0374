"""Render finished Markdown as safe HTML.

The HTML contains no external images, and only http, https and mailto addresses. `![alt](url)` becomes a placeholder,
because an image would make the browser call an unknown server (CSP: img-src 'self').

Short texts are rendered in the caller's process, others in a pool of processes with limits. A short text that reaches
these limits is shown without the colors of code, and another one as source.
"""

import logging
import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from threading import RLock
from unicodedata import bidirectional

from agents.process_pool import Limits, ProcessPool, WorkFailed
from chat.rendering.budget import IN_THREAD, MAX_MARKDOWN_LENGTH, ON_LOOP, Allowance, BudgetExceeded, end_of_markdown
from chat.rendering.markdown import external_images
from chat.rendering.markdown.blocks import draw_all, normalize, plain_blocks
from chat.rendering.markdown.highlight import is_colorable

__all__ = ["blocks", "colored", "draw", "draw_all", "draw_soon", "remember", "render"]

logger = logging.getLogger(__name__)
# In characters. A longer text is always sent to another process. Common Markdown of this length takes about 30 ms.
MAX_LENGTH_HERE = 20_000
# Limits that the same text will always reach. After other failures it is rendered again.
LASTING = ("cpu", "memory", "output", "time")
# In characters of HTML. While Chromium parses an element with dir="auto", it searches for the first letter again after
# each child. This takes seconds for a long block whose letters are all in code, which has its own direction.
MAX_AUTO_LENGTH = 10_000
_NO_TEXT = re.compile(r'<code dir="ltr">.*?</code>|<[^>]*>|&#?\w+;', re.DOTALL)
_DIRECTIONS = {"L": "ltr", "R": "rtl", "AL": "rtl"}


class BlockCache:
    """A least-recently-used cache of rendered texts. It is limited by characters, and one text may use a sixteenth."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._entries: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._lock = RLock()  # pages are rendered in threads

    def get(self, text: str) -> tuple[str, ...] | None:
        """Return the blocks of the text, or None if they are not cached."""
        with self._lock:
            found = self._entries.get(text)
            if found is not None:
                self._entries.move_to_end(text)
            return found

    def put(self, text: str, blocks: tuple[str, ...]) -> None:
        """Cache the blocks of the text, and drop the oldest texts."""
        if _weight(text, blocks) > self._limit // 16:
            return
        with self._lock:
            self._drop(text)
            self._entries[text] = blocks
            self._size += _weight(text, blocks)
            while self._size > self._limit:
                self._drop(next(iter(self._entries)))

    def put_once(self, text: str, blocks: tuple[str, ...]) -> tuple[str, ...]:
        """Cache the blocks of the text unless some are cached already. Return the cached ones."""
        with self._lock:
            known = self.get(text)
            if known is None:
                self.put(text, blocks)
        return known or blocks

    def _drop(self, text: str) -> None:
        blocks = self._entries.pop(text, None)
        if blocks is not None:
            self._size -= _weight(text, blocks)


def _weight(text: str, blocks: tuple[str, ...]) -> int:
    return len(text) + sum(map(len, blocks)) + 500  # 500: the size of the objects


_cache = BlockCache(limit=32_000_000)
# Two processes, so that one hostile text does not block all others. They are kept between the messages of a
# conversation, because most languages need them, and starting one and loading a lexer takes 0.6 s.
_LIMITS = Limits(cpu_seconds=1.0, seconds=10.0, memory_mb=256, output_bytes=10_000_000, queue_seconds=5.0)
_processes = ProcessPool("chat.rendering.markdown.blocks", _LIMITS, size=2, keep_seconds=300.0)
# A process of its own for the previews of files, so that many of them do not keep messages waiting.
_previews = ProcessPool("chat.rendering.markdown.blocks", _LIMITS, size=1, keep_seconds=60.0)


def render(text: str) -> str:
    """Return the safe HTML of a finished text, with each block in a `<div class="block">`. This blocks the thread."""
    return in_blocks(blocks(text))


def in_blocks(drawn: tuple[str, ...]) -> str:
    """Join rendered blocks as a page shows them."""
    return "".join(f'<div class="block" dir="{direction_of(block)}">{block}</div>' for block in drawn)


def direction_of(html: str) -> str:
    """Return the value of `dir` for a block: "auto", or for a long block the direction of its first letter.

    It is the direction that a browser would determine.
    """
    if len(html) <= MAX_AUTO_LENGTH:
        return "auto"
    found = (_DIRECTIONS.get(bidirectional(letter)) for text in _texts(html) for letter in text)
    return next(filter(None, found), "ltr")


def _texts(html: str) -> Iterator[str]:
    start = 0
    for other in _NO_TEXT.finditer(html):
        yield html[start : other.start()]
        start = other.end()
    yield html[start:]


def blocks(text: str) -> tuple[str, ...]:
    """Return the safe HTML of each top-level block of a finished text, which can be any text (MSG-12).

    This blocks the thread while another process renders.
    """
    head, rest = _split(text)
    drawn = _quickly(head, IN_THREAD)
    if drawn is None:
        try:
            drawn = _keep(head, _processes.run("draw_in_process", external_images.key(), normalize(head)))
        except WorkFailed as failed:
            drawn = _without_colors(head, failed, IN_THREAD)
    return drawn + rest


async def draw(text: str) -> tuple[str, ...]:
    """Return the same as `blocks`, for coroutines. If it is cancelled, the work ends."""
    head, rest = _split(text)
    drawn = _quickly(head, ON_LOOP)
    if drawn is None:
        try:
            drawn = _keep(head, await _processes.run_async("draw_in_process", external_images.key(), normalize(head)))
        except WorkFailed as failed:
            drawn = _without_colors(head, failed, ON_LOOP)
    return drawn + rest


def colored(code: str, language: str) -> str | None:
    """Return code as HTML with colored spans, or None if it stays plain.

    This blocks the thread while another process works, because code may be as long as a file.
    """
    if not is_colorable(code, language):
        return None
    try:
        pieces = _previews.run("highlight_in_process", code, language)
    except WorkFailed as failed:
        logger.warning("Code of %d characters has no colors: %s", len(code), failed)
        return None
    return b"".join(pieces).decode() or None


def draw_soon(text: str) -> tuple[str, ...] | None:
    """Return the blocks of a text if they are cached or rendered within the event loop's allowance, else None."""
    return _quickly(text, ON_LOOP) if len(text) <= MAX_MARKDOWN_LENGTH else None


def remember(text: str, drawn: tuple[str, ...]) -> None:
    """Cache the blocks of a text that was streamed, so that a page does not render it again."""
    if len(text) <= MAX_MARKDOWN_LENGTH:
        _cache.put(text, drawn)


def _split(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the Markdown part of a text, and the blocks for the rest of a very long text."""
    if len(text) <= MAX_MARKDOWN_LENGTH:
        return text, ()
    source = normalize(text)
    end = end_of_markdown(source)
    return (text, ()) if end is None else (source[:end], plain_blocks(source[end:]))


def _quickly(head: str, allowance: Allowance) -> tuple[str, ...] | None:
    drawn = _cache.get(head)
    if drawn is None and len(head) <= MAX_LENGTH_HERE:
        try:
            drawn = draw_all(normalize(head), allowance)
        except BudgetExceeded:
            return None
        _cache.put(head, drawn)
    return drawn


def _keep(head: str, pieces: list[bytes]) -> tuple[str, ...]:
    # Near a limit, one of two simultaneous renderings can fail while the other succeeds. All pages show the first
    # result.
    return _cache.put_once(head, tuple(piece.decode() for piece in pieces))


def _without_colors(head: str, failed: WorkFailed, allowance: Allowance) -> tuple[str, ...]:
    """Draw a text here with plain code. If that exceeds the allowance, too, show the text as source."""
    try:
        if len(head) > MAX_LENGTH_HERE:
            raise BudgetExceeded
        drawn, form = draw_all(normalize(head), replace(allowance, colors=False)), "without colors"
    except BudgetExceeded:
        drawn, form = plain_blocks(normalize(head)), "as source"
    logger.warning("Markdown of %d characters is shown %s: %s", len(head), form, failed)
    return _cache.put_once(head, drawn) if failed.reason in LASTING else _cache.get(head) or drawn
