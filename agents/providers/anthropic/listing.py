"""What Anthropic's list of models states about a model. Pure."""

from __future__ import annotations

from anthropic.types import ModelInfo

from agents.providers.base import ListedModel
from agents.reasoning import EFFORTS, MAX_BUDGET, ReasoningSupport


def listed_model(model: ModelInfo) -> ListedModel:
    """Return what the list states. Compatible servers state less, and the SDK does not check what a server sends."""
    return ListedModel(_positive(model.max_input_tokens), _reasoning_support(model))


def _reasoning_support(model: ModelInfo) -> ReasoningSupport | None:
    """Return how the model can reason, or None if the list does not state it."""
    thinking, effort = (getattr(model.capabilities, name, None) for name in ("thinking", "effort"))
    if thinking is None and effort is None:
        return None
    efforts = tuple(level for level in EFFORTS if _is_supported(effort, level))
    adaptive, budget = (_is_supported(thinking, "types", kind) for kind in ("adaptive", "enabled"))
    return ReasoningSupport(
        reasons=adaptive or budget or bool(efforts),
        efforts=efforts,
        budget=budget,
        adaptive=adaptive,
        # The list does not state whether the model thinks without being asked. All recent ones do.
        always=adaptive,
        most_tokens=_positive(model.max_tokens) or MAX_BUDGET,
    )


def _is_supported(value: object, *path: str) -> bool:
    for name in path:
        value = getattr(value, name, None)
    return getattr(value, "supported", None) is True


def _positive(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None
