"""The correction of token estimates by counts that the vendor reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chat.models import ChatMessage
from chat.projections.context_view import Block

# Outside this range of factors, the estimate and the count cannot be of the same request.
PLAUSIBLE = (0.25, 4.0)


@dataclass(frozen=True, slots=True)
class Measure:
    """The estimate of a whole request, and the factor that corrects it. `read` is the count from which it comes."""

    estimate: float
    factor: float = 1.0
    read: int | None = None

    def tokens(self, estimate: float) -> int:
        return round(estimate * self.factor)


def measure_request(laid: Sequence[Block], around: float, model: tuple[str, str]) -> Measure:
    """Estimate a request of these blocks, and correct it by the count that the last answer of the same model reported.

    `around` is the estimate of the system prompt and the tools. The correction is only made if the rows before that
    answer have not changed since. `model` is (provider, model).
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
        else correct(estimate, around + sum(block.tokens for block in before), row.input_tokens)
    )


def correct(estimate: float, earlier: float, read: int | None) -> Measure:
    """Correct an estimate by the error of an `earlier` one, for which the vendor counted `read` tokens."""
    factor = (read or 0) / earlier if earlier else 0.0
    least, most = PLAUSIBLE
    return Measure(estimate, factor, read) if least <= factor <= most else Measure(estimate)


def _last_counted(laid: Sequence[Block], model: tuple[str, str]) -> tuple[int, ChatMessage] | None:
    """Return the place and the row of this model's last response for which the vendor reported its input tokens."""
    for place in range(len(laid) - 1, -1, -1):
        for line in laid[place].lines:
            row = line.row
            if laid[place].role == "assistant" and row.input_tokens and (row.provider, row.model) == model:
                return place, row
    return None
