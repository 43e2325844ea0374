"""Pages of a context: a long one is never drawn as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chat.projections.context_view import Block

PAGE = 40


@dataclass(frozen=True, slots=True)
class Page:
    """Blocks to be drawn, how many stand before and after them, and the places up to which those go (None: the end)."""

    blocks: Sequence[Block]
    before: int
    after: int
    earlier: int | None
    later: int | None


def page_of(laid: Sequence[Block], until: int | None) -> Page:
    """Take the blocks up to the place `until`, or the last ones; at the beginning a whole page in any case."""
    end = len(laid) if until is None else sum(_place(block) <= until for block in laid)
    end = max(end, min(PAGE, len(laid)))
    start, beyond = max(0, end - PAGE), end + PAGE
    return Page(
        blocks=laid[start:end],
        before=start,
        after=len(laid) - end,
        earlier=_place(laid[start - 1]) if start else None,
        later=_place(laid[beyond - 1]) if beyond < len(laid) else None,
    )


def _place(block: Block) -> int:
    return block.lines[0].row.sequence or 0
