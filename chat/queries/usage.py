"""The usage of a session so far: tokens by model, costs, turns, and their durations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from django.db.models import Avg, Count, Max, Q, Sum

from agents.prices import Money, Tokens, cost_of, total_of
from chat.agents_setup import registry
from chat.models import ChatMessage, MessageType, Session
from chat.snapshots import MessageSnapshot

FIGURES = {
    "input_tokens": Sum("input_tokens"),
    "output_tokens": Sum("output_tokens"),
    "cache_read_tokens": Sum("cache_read_tokens"),
    "cache_write_tokens": Sum("cache_write_tokens"),
    "responses": Count("first_token_latency_ms"),
    "latency": Avg("first_token_latency_ms"),
    "turns": Count("pk", filter=Q(type=MessageType.TURN_DONE, removed_at__isnull=True)),
    "longest": Max("duration_seconds", filter=Q(removed_at__isnull=True)),
}
MEASURED = Q(input_tokens__isnull=False) | Q(output_tokens__isnull=False) | Q(first_token_latency_ms__isnull=False)


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """Tokens of one model. `input_tokens` includes cached input. `cost` is None if the price is not known."""

    provider: str
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int = 0
    cost: Money | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """A session's usage. `longest_seconds` and `first_token_ms` are None if they are not known."""

    models: list[ModelUsage]
    turns: int
    longest_seconds: float | None
    first_token_ms: int | None

    @property
    def longest_milliseconds(self) -> int:
        return round((self.longest_seconds or 0) * 1000)

    @property
    def costs(self) -> tuple[Money, ...]:
        """The costs by currency. Empty if the price of one of the models is not known."""
        return total_of(each.cost for each in self.models)

    @property
    def input_tokens(self) -> int:
        return sum(each.input_tokens for each in self.models)

    @property
    def output_tokens(self) -> int:
        return sum(each.output_tokens for each in self.models)


def usage_of(session: Session, turn_id: str = "") -> Usage:
    """Return the usage of a session, or of one of its turns, in one query.

    Messages that were withdrawn or removed have been paid for, so their tokens count, but their turns do not.
    """
    rows = ChatMessage.objects.filter(MEASURED | Q(type=MessageType.TURN_DONE), session=session.pk)
    rows = rows.filter(turn_id=turn_id) if turn_id else rows
    counted = rows.values("provider", "model").annotate(**FIGURES).order_by("provider", "model")
    groups = cast("list[dict[str, Any]]", list(counted))  # the stubs do not see into FIGURES
    responses = sum(group["responses"] for group in groups)
    waited = sum(group["latency"] * group["responses"] for group in groups if group["latency"] is not None)
    return Usage(
        models=[_model(group) for group in groups if group["input_tokens"] or group["output_tokens"]],
        turns=sum(group["turns"] for group in groups),
        longest_seconds=max((group["longest"] for group in groups if group["longest"] is not None), default=None),
        first_token_ms=round(waited / responses) if responses else None,
    )


def _model(group: dict[str, Any]) -> ModelUsage:
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    sent, received, cache_read, cache_write = (group[name] or 0 for name in names)
    price = registry().price(group["provider"], group["model"])
    cost = cost_of(Tokens(sent, received, cache_read, cache_write), price)
    return ModelUsage(group["provider"], group["model"], sent, received, cache_read, cache_write, cost)


def cost_of_message(message: MessageSnapshot) -> Money | None:
    """Return the cost of the response of which this is the last message, or None if it is not known."""
    usage = message.usage
    if usage is None:
        return None
    tokens = Tokens(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    return cost_of(tokens, registry().price(message.provider, message.model))
