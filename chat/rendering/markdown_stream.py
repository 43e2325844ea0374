"""Markdown that is still being written: finished blocks freeze, and only the unfinished tail is drawn again."""

from chat.rendering.frozen import Append, Frozen, Op, Replace
from chat.rendering.source import Pieces
from chat.rendering.tail import Tail

__all__ = ["Append", "MarkdownStream", "Op", "Replace"]


class MarkdownStream:
    """The blocks of a growing text. However it is cut: frozen blocks at the end == `markdown.blocks(text)`.

    A block freezes once the line after it settles that it can grow no more; it is then drawn for good, with its code
    coloured. Only a link definition that comes later can replace it. What a piece costs depends on the tail alone.
    """

    def __init__(self) -> None:
        self._pieces = Pieces()
        self._frozen = Frozen()
        self._tail = Tail(self._frozen.references)

    @property
    def blocks(self) -> list[str]:
        """The safe HTML of each frozen block."""
        return self._frozen.html

    def feed(self, delta: str) -> list[Op]:
        """Take more text, return which blocks were frozen or replaced."""
        slices = self._tail.add(self._pieces.add(delta))
        return self._frozen.add(slices) if slices else []

    def finish(self) -> list[Op]:
        """Freeze what is left, as no more will come."""
        ops = self._frozen.add(self._tail.add(self._pieces.end()))
        return ops + self._frozen.add(self._tail.rest())

    def tail_html(self) -> str:
        """Return the safe HTML of what is not frozen, code uncoloured."""
        return self._tail.html()
