"""Markdown that is still being written: finished blocks freeze, and only the unfinished tail is drawn again."""

from chat.rendering.budget import UNLIMITED, Allowance, Meter, TooDear, end_of_markdown
from chat.rendering.markdown.frozen import Append, Frozen, Op, Replace
from chat.rendering.markdown.source import Pieces, PlainText
from chat.rendering.markdown.tail import Tail

__all__ = ["Append", "MarkdownStream", "Op", "Replace"]


class MarkdownStream:
    """The blocks of a growing text. However it is cut: frozen blocks at the end == `markdown.blocks(text)`.

    A block freezes once the line after it settles that it can grow no more; it is then drawn for good, with its code
    coloured. Only a link definition that comes later can replace it. What a piece costs depends on the tail alone.

    `start` begins a frame, which feeds text and draws the tail within the allowance of CPU seconds. A finished block
    that exceeds the allowance is shown as source until it is drawn elsewhere. An unfinished end that exceeds it stops
    the drawing: the end and all that follows are shown as source. `is_exact` tells whether the blocks are those of the
    whole text; if they are not at its end, the whole text must be drawn elsewhere.
    """

    def __init__(self, allowance: Allowance = UNLIMITED) -> None:
        self._seconds = allowance.seconds
        self._meter = Meter()
        self._pieces = Pieces()
        self._frozen = Frozen(self._meter, allowance)
        self._tail = Tail(self._frozen.references, self._meter)
        self._length = 0
        self._plain: PlainText | None = None
        self._was_stopped = False

    @property
    def blocks(self) -> list[str]:
        """The safe HTML of each frozen block."""
        return self._frozen.html

    @property
    def is_exact(self) -> bool:
        return not self._was_stopped and self._frozen.is_exact

    @property
    def provisional(self) -> dict[int, str]:
        """The source of frozen blocks that must be drawn elsewhere, by index."""
        return self._frozen.provisional

    def complete(self, index: int, html: str) -> Op:
        """Put what was drawn elsewhere in the place of a provisional block."""
        return self._frozen.complete(index, html)

    def start(self, now: float, seconds: float | None = None) -> None:
        """Begin a frame at the thread's CPU time `now`, with `seconds` of CPU in place of the allowance."""
        self._meter.start(self._seconds if seconds is None else seconds, now)

    def feed(self, delta: str) -> list[Op]:
        """Take more text, return which blocks were frozen or replaced."""
        return self._feed(self._pieces.add(delta))

    def finish(self) -> list[Op]:
        """Freeze what is left, as no more will come."""
        ops = self._feed(self._pieces.end())
        if self._plain is None:
            ops += self._freeze("", is_end=True)
        if self._plain is not None:
            ops += self._frozen.append(self._plain.end())
        return ops

    def tail_html(self) -> str:
        """Return the safe HTML of what is not frozen, code uncoloured."""
        if self._plain is None:
            try:
                return self._tail.html()
            except TooDear:
                self._stop(self._tail.source)
        return self._plain.html() if self._plain is not None else ""

    def _feed(self, text: str) -> list[Op]:
        if self._plain is not None:
            return self._frozen.append(self._plain.add(text))
        end = end_of_markdown(text, self._length)
        self._length += len(text)
        if end is None:
            return self._freeze(text)
        ops = self._freeze(text[:end], is_end=True)
        if self._plain is None:
            self._plain = PlainText()
        return ops + self._frozen.append(self._plain.add(text[end:]))

    def _freeze(self, text: str, *, is_end: bool = False) -> list[Op]:
        slices, is_too_dear = list[str](), False
        try:
            slices += self._tail.add(text)
            if is_end:
                slices += self._tail.rest()
        except TooDear:
            is_too_dear = True
        if not (slices or is_too_dear):
            return []
        ops, rest = self._frozen.add(slices)
        if is_too_dear or rest:
            self._stop("".join(rest) + self._tail.source)
        return ops

    def _stop(self, source: str) -> None:
        """Show the source that is not frozen; its blocks are complete with the next call."""
        self._was_stopped = True
        self._plain = PlainText(source)
