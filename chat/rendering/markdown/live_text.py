"""The frames of one streaming message, drawn once for all pages."""

from collections.abc import Sequence
from time import thread_time
from typing import Any, Protocol

from chat.rendering.budget import UNLIMITED, Allowance
from chat.rendering.markdown.render import remember
from chat.rendering.markdown.stream import Append, MarkdownStream, Op, Replace

# The last characters of an id. They are enough to distinguish the few messages that stream in one session.
ID_END = 5
# In characters. A block that shares less with the tail is sent whole.
MIN_SHARED = 16


class Stream(Protocol):
    """An object that draws the blocks of a growing text, such as a MarkdownStream."""

    @property
    def blocks(self) -> list[str]: ...
    @property
    def is_exact(self) -> bool: ...
    @property
    def provisional(self) -> dict[int, str]: ...
    def start(self, now: float, seconds: float | None = None) -> None: ...
    def feed(self, text: str) -> list[Op]: ...
    def finish(self) -> list[Op]: ...
    def tail_html(self) -> str: ...
    def complete(self, index: int, html: str) -> Op: ...


class LiveText:
    """Makes frames: frozen blocks, and the unfinished tail as a difference from the previous frame.

    A page keeps {n, rev, blocks, tail} and applies frames to it:

        delta   requires n to be the page's n + 1; otherwise the page requests a snapshot. Appends `blocks`, replaces
                the block at each [index, html] of `replace` (rev + 1 each), sets tail = tail[:keep] + `tail`. The last
                frame has `end` 1.
        snap    keeps the first `from` blocks of the page, appends `blocks`, sets n, rev and tail. Has `end` 1 if the
                text has ended.

    `keep` counts UTF-16 units, as browsers do. Empty keys are left out: no blocks, no replace, keep 0, tail "".

    `short` is the last delta as a list, for pages that request this form. It leaves out what the new tail shares with
    the previous one. Its items are the last characters of the id, n, the number of units that stay at the tail's end,
    the number of units before these that are replaced, and their replacement; then blocks, replace and end, unless all
    of these are empty. A block that shares much with the previous tail is [units of the tail's start, units of its end,
    the text between them].

    If the allowance is too small to draw the text exactly, its last frame has no `end` (`ended` is False), and `settle`
    ends the text with blocks that were drawn elsewhere.
    """

    def __init__(self, message_id: str, allowance: Allowance = UNLIMITED, stream: Stream | None = None) -> None:
        self.id = message_id
        self.length = 0  # in code points, including text that is not drawn yet
        # Seconds of CPU time per frame. The interval to the next frame must be at least 20 times as long. This is the
        # smaller value of the last two frames, because a code block is highlighted only once.
        self.last_cost = 0.0
        self._spent = 0.0
        self.ended = False
        self._pending: list[str] = []
        self._drawn: list[str] = []
        self._stream: Stream = stream or MarkdownStream(allowance)
        self._settled: list[str] | None = None
        self._tail = ""
        self._n = 0
        self._rev = 0
        self.short: list[Any] = []

    def append(self, text: str) -> None:
        """Add text. The next frame draws it."""
        self._pending.append(text)
        self.length += len(text)

    @property
    def provisional(self) -> dict[int, str]:
        """The source of blocks that must be drawn elsewhere, by index."""
        return {} if self.ended else self._stream.provisional

    def begin(self, text: str, seconds: float) -> None:
        """Draw the beginning of a text within `seconds` of CPU time."""
        self.append(text)
        self.frame(seconds=seconds)

    def frame(self, *, end: bool = False, seconds: float | None = None) -> dict[str, Any] | None:
        """Draw the text since the last frame. Return None if nothing changed.

        With `end`, freeze the rest. `seconds` of CPU time replace the allowance for this frame.
        """
        if self.ended:
            return None
        started = thread_time()
        self._stream.start(started, seconds)
        text = "".join(self._pending)
        self._pending.clear()
        self._drawn.append(text)
        ops = self._stream.feed(text)
        if end:
            ops += self._stream.finish()
            if self._stream.is_exact:
                self.ended = True
                self._remember("".join(self._drawn), tuple(self._stream.blocks))
                self._drawn.clear()
        before, self._tail = self._tail, self._stream.tail_html()
        is_changed = end or ops or before != self._tail
        frame = self._frame(ops, before, end=self.ended) if is_changed else None
        earlier, self._spent = self._spent, thread_time() - started
        self.last_cost = min(earlier, self._spent)
        return frame

    def snapshot(self, have_blocks: int = 0, have_rev: int = 0) -> dict[str, Any]:
        """Return the state after the last frame, without the blocks that the page already has from the same rev."""
        blocks = self._stream.blocks if self._settled is None else self._settled
        start = have_blocks if have_rev == self._rev and 0 < have_blocks <= len(blocks) else 0
        return self._snap(blocks, start)

    def complete(self, index: int, html: str) -> dict[str, Any]:
        """Replace a provisional block with HTML that was drawn elsewhere."""
        return self._frame([self._stream.complete(index, html)], self._tail, end=False)

    def settle(self, blocks: Sequence[str]) -> dict[str, Any]:
        """End the text with blocks that were drawn elsewhere. Pages keep the blocks that did not change."""
        before, self._settled = self._stream.blocks, list(blocks)
        pairs = enumerate(zip(before, blocks, strict=False))
        start = next((index for index, (old, new) in pairs if old != new), min(len(before), len(blocks)))
        self.ended, self._tail = True, ""
        self._n += 1
        self._rev += 1
        return self._snap(self._settled, start)

    def _remember(self, text: str, blocks: tuple[str, ...]) -> None:
        """Cache the blocks, so that a page does not render the text again."""
        remember(text, blocks)

    def _snap(self, blocks: list[str], start: int) -> dict[str, Any]:
        snap = {"op": "snap", "id": self.id, "n": self._n, "rev": self._rev, "from": start}
        return {**snap, "blocks": blocks[start:], "tail": self._tail, **({"end": 1} if self.ended else {})}

    def _frame(self, ops: list[Op], before: str, *, end: bool) -> dict[str, Any]:
        replace = [[op.index, op.html] for op in ops if isinstance(op, Replace)]
        keep = common_prefix(before, self._tail)
        self._n += 1
        self._rev += len(replace)
        parts = {
            "blocks": [op.html for op in ops if isinstance(op, Append)],
            "replace": replace,
            "keep": utf16_length(self._tail[:keep]),
            "tail": self._tail[keep:],
            "end": int(end),
        }
        self.short = self._short_form(parts, before, keep)
        return {"op": "delta", "id": self.id, "n": self._n, **{key: part for key, part in parts.items() if part}}

    def _short_form(self, parts: dict[str, Any], before: str, keep: int) -> list[Any]:
        kept = common_suffix(before[keep:], self._tail[keep:])
        stays = utf16_length(before[len(before) - kept :])
        replaced = utf16_length(before[keep : len(before) - kept])
        short = [self.id[-ID_END:], self._n, stays, replaced, self._tail[keep : len(self._tail) - kept]]
        if parts["blocks"] or parts["replace"] or parts["end"]:
            blocks = [
                _block_or_difference(before if not number else "", html) for number, html in enumerate(parts["blocks"])
            ]
            short += [blocks, parts["replace"], parts["end"]]
        return short


def common_prefix(old: str, new: str) -> int:
    """Return the number of code points that both texts start with. Slices compare much faster than characters."""
    same, limit = 0, min(len(old), len(new))
    while same < limit:
        middle = (same + limit + 1) // 2
        if old[same:middle] == new[same:middle]:
            same = middle
        else:
            limit = middle - 1
    return same


def common_suffix(old: str, new: str) -> int:
    """Return the number of code points that both texts end with."""
    same, limit = 0, min(len(old), len(new))
    while same < limit:
        middle = (same + limit + 1) // 2
        if old[len(old) - middle : len(old) - same] == new[len(new) - middle : len(new) - same]:
            same = middle
        else:
            limit = middle - 1
    return same


def _block_or_difference(tail: str, html: str) -> str | list[Any]:
    """Return a block or, if that is shorter, its difference from the tail that it was before it froze."""
    start = common_prefix(tail, html)
    end = common_suffix(tail[start:], html[start:])
    if start + end < MIN_SHARED:
        return html
    return [utf16_length(html[:start]), utf16_length(html[len(html) - end :]), html[start : len(html) - end]]


def utf16_length(text: str) -> int:
    """Return the length of a text in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
