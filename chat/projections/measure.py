"""Correct token estimates by the counts that the vendor reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chat.models import ChatMessage
from chat.projections.context_view import Block

# Beyond this an estimate and a count are not of the same thing.
PLAUSIBLE = (0.25, 4.0)


@dataclass(frozen=True, slots=True)
class Measure:
    """The estimate of a request as a whole, and by what it is multiplied; `read` is the count that this comes from."""

    estimate: float
    factor: float = 1.0
    read: int | None = None

    def tokens(self, estimate: float) -> int:
        return round(estimate * self.factor)


def measured(laid: Sequence[Block], around: float, model: tuple[str, str]) -> Measure:
    """Estimate a request of these blocks and what stands `around` them, by the last answer of the same model.

    It has read the rows before it, if they have not changed since.
    """
    estimate = around + sum(block.tokens for block in laid)
    found = _last_counted(laid, model)
    if found is None:
        return Measure(estimate)
    place, row = found
    before = laid[:place]
    changed = any(line.row.revision > row.revision for block in before for line in block.lines)
    return (
        Measure(estimate)
        if changed
        else set_right(estimate, around + sum(block.tokens for block in before), row.input_tokens)
    )


def set_right(estimate: float, of_what_was_read: float, read: int | None) -> Measure:
    """Multiply an estimate by what another one, of what was `read`, was wrong by."""
    factor = (read or 0) / of_what_was_read if of_what_was_read else 0.0
    least, most = PLAUSIBLE
    return Measure(estimate, factor, read) if least <= factor <= most else Measure(estimate)


def _last_counted(laid: Sequence[Block], model: tuple[str, str]) -> tuple[int, ChatMessage] | None:
    """Where the last response begins of which it is known what was read, and its row that knows."""
    for place in range(len(laid) - 1, -1, -1):
        for line in laid[place].lines:
            row = line.row
            if laid[place].role == "assistant" and row.input_tokens and (row.provider, row.model) == model:
                return place, row
    return None
