"""What a session has cost so far: tokens by model, turns and how quick they were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from django.db.models import Avg, Count, Max, Q, Sum

from chat.models import ChatMessage, MessageType, Session

FIGURES = {
    "input_tokens": Sum("input_tokens"),
    "output_tokens": Sum("output_tokens"),
    "cache_read_tokens": Sum("cache_read_tokens"),
    "responses": Count("first_token_latency_ms"),
    "latency": Avg("first_token_latency_ms"),
    "turns": Count("pk", filter=Q(type=MessageType.TURN_DONE, removed_at__isnull=True)),
    "longest": Max("duration_seconds", filter=Q(removed_at__isnull=True)),
}
TOLD = Q(input_tokens__isnull=False) | Q(output_tokens__isnull=False) | Q(first_token_latency_ms__isnull=False)


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """Tokens of one model; cached input is counted in `input_tokens` too."""

    provider: str
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int


@dataclass(frozen=True, slots=True)
class Usage:
    """A session's figures. `longest_seconds` and `first_token_ms` are None while nothing is known of them."""

    models: list[ModelUsage]
    turns: int
    longest_seconds: float | None
    first_token_ms: int | None

    @property
    def longest_milliseconds(self) -> int:
        return round((self.longest_seconds or 0) * 1000)

    @property
    def input_tokens(self) -> int:
        return sum(each.input_tokens for each in self.models)

    @property
    def output_tokens(self) -> int:
        return sum(each.output_tokens for each in self.models)


def usage_of(session: Session) -> Usage:
    """Add up, in one query. What was withdrawn or removed has been paid for, and counts as tokens; not as turns."""
    rows = ChatMessage.objects.filter(TOLD | Q(type=MessageType.TURN_DONE), session=session.pk)
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
    counts = (group[name] or 0 for name in ("input_tokens", "output_tokens", "cache_read_tokens"))
    return ModelUsage(group["provider"], group["model"], *counts)
