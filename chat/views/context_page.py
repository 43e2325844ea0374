"""Pages of a context. A long context is never rendered completely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chat.projections.context_view import Block

PAGE = 40


@dataclass(frozen=True, slots=True)
class ContextPage:
    """The blocks of a page. `before` and `after` are the numbers of blocks before and after them.

    `earlier` and `later` are the parameters `until` of the neighboring pages. `earlier` is None on the first page.
    `later` is None if the next page is the last one or if there is none.
    """

    blocks: Sequence[Block]
    before: int
    after: int
    earlier: int | None
    later: int | None


def context_page(laid: Sequence[Block], until: int | None) -> ContextPage:
    """Return the page that ends at the sequence `until`, or the last page. The first page is always full."""
    end = len(laid) if until is None else sum(_place(block) <= until for block in laid)
    end = max(end, min(PAGE, len(laid)))
    start, beyond = max(0, end - PAGE), end + PAGE
    return ContextPage(
        blocks=laid[start:end],
        before=start,
        after=len(laid) - end,
        earlier=_place(laid[start - 1]) if start else None,
        later=_place(laid[beyond - 1]) if beyond < len(laid) else None,
    )


def _place(block: Block) -> int:
    return block.lines[0].row.sequence or 0
