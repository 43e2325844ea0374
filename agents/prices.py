"""The costs of responses, computed from a table of prices. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MILLION = Decimal(1_000_000)
Amount = Annotated[Decimal, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class Price(BaseModel):
    """The price of a model per million tokens. If a cache price is None, cached tokens cost as much as other input."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: Amount
    output: Amount
    cache_read: Amount | None = None
    cache_write: Amount | None = None
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in a currency."""

    amount: Decimal
    currency: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of one response or of several; None if unknown. `input` includes those read from or written to a cache."""

    input: int | None
    output: int | None
    cache_read: int | None = None
    cache_write: int | None = None


def cost_of(tokens: Tokens, price: Price | None) -> Money | None:
    """Return the cost of tokens, or None (not 0) if the price or the numbers are unknown."""
    if price is None or tokens.input is None or tokens.output is None:
        return None
    read, written = tokens.cache_read or 0, tokens.cache_write or 0
    fresh = max(0, tokens.input - read - written)
    read_price = price.input if price.cache_read is None else price.cache_read
    write_price = price.input if price.cache_write is None else price.cache_write
    total = fresh * price.input + read * read_price + written * write_price + tokens.output * price.output
    return Money(total / MILLION, price.currency)


def total_of(costs: Iterable[Money | None]) -> tuple[Money, ...]:
    """Add up costs by currency. Return () if one of them is unknown, because the sum would be too low."""
    sums: dict[str, Decimal] = {}
    for cost in costs:
        if cost is None:
            return ()
        sums[cost.currency] = sums.get(cost.currency, Decimal(0)) + cost.amount
    return tuple(Money(amount, currency) for currency, amount in sums.items())
