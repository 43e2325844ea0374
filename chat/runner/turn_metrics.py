"""Add the events of a turn to the metrics: tokens, errors, the first token, the outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import get_args

from agents.errors import AgentError, ProviderError
from agents.events import FinishReason, ResponseDone, RetryScheduled, TurnFailed, TurnFinished, Usage
from chat import metrics
from chat.runs.turn_state import Stopped, TurnEvent, TurnState

COUNTED = (ResponseDone, RetryScheduled, TurnFinished, TurnFailed, Stopped)


def create_series(providers: Iterable[str]) -> None:
    """Create the series of errors and outcomes with 0. Otherwise, `increase` in Prometheus misses the first of each."""
    for outcome in (*get_args(FinishReason), "failed", "stopped"):
        metrics.turns_ended.labels(outcome)
    codes = {kind.code for kind in _kinds(ProviderError)}
    for provider in providers:
        for code in codes:
            metrics.provider_errors.labels(provider, code)


def _kinds(kind: type[ProviderError]) -> Iterator[type[ProviderError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


def count_event(event: TurnEvent, state: TurnState) -> None:
    """Count an event of a turn. `state` is the state before the event."""
    match event:
        case ResponseDone():
            count_tokens(state.provider, state.model, event.usage)
            if state.first_token_ms is not None:
                metrics.first_token_seconds.labels(state.provider).observe(state.first_token_ms / 1000)
        case RetryScheduled():
            _count_error(event.error, state.provider)
        case TurnFailed():
            _count_error(event.error, state.provider)
            metrics.turns_ended.labels("failed").inc()
        case TurnFinished():
            metrics.turns_ended.labels(event.reason).inc()
        case Stopped():
            metrics.turns_ended.labels("stopped").inc()


def count_tokens(provider: str, model: str, usage: Usage) -> None:
    """Count the tokens of a response by kind."""
    kinds = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
    }
    for kind, number in kinds.items():
        if number and number > 0:  # some servers send negative numbers
            metrics.tokens.labels(provider, model, kind).inc(number)


def _count_error(error: AgentError, provider: str) -> None:
    if isinstance(error, ProviderError):
        metrics.provider_errors.labels(provider, error.code).inc()
