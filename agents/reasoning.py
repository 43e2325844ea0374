"""How much a model reasons before it answers: what each model lets a request choose, and what is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from agents.model_table import known

# The vendors' names of effort levels, lowest first.
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[str, ...] = get_args(Effort)
# Anthropic refuses a smaller thinking budget; no model writes more than the larger one.
SMALLEST_BUDGET = 1_024
LARGEST_BUDGET = 128_000


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What is chosen; an empty `effort` and a `budget` (tokens) of None leave the choice to the model."""

    effort: str = ""
    budget: int | None = None

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Reasoning:
        """Read the choice that a session's `config` keeps; whatever is no choice there stands for none."""
        effort, budget = config.get("reasoning_effort"), config.get("thinking_budget")
        is_budget = type(budget) is int and SMALLEST_BUDGET <= budget <= LARGEST_BUDGET
        return cls(str(effort) if effort in EFFORTS else "", budget if is_budget else None)

    def to_config(self) -> dict[str, Any]:
        """Give the choice the form in which a session's `config` keeps it."""
        return {"reasoning_effort": self.effort, "thinking_budget": self.budget}


UNCHOSEN = Reasoning()


@dataclass(frozen=True, slots=True)
class ReasoningSupport:
    """What a model offers.

    `reasons`: it reasons at all. `efforts`: the levels that a request may name, lowest first, and `default` the one
    that applies without. `budget`: a request may set a number of thinking tokens. `adaptive`: it decides itself how
    much to think (Anthropic), and with `always` it does so unless a request says otherwise.
    """

    reasons: bool = True
    efforts: tuple[str, ...] = ()
    default: str = ""
    budget: bool = False
    adaptive: bool = False
    always: bool = False

    @property
    def is_adjustable(self) -> bool:
        return bool(self.efforts) or self.budget

    @property
    def least(self) -> Reasoning:
        """The choice that reasons least: no choice where the model thinks only when asked to."""
        asks = self.adaptive and not self.always
        return Reasoning(self.efforts[0]) if self.efforts and not asks else UNCHOSEN

    def applied(self, chosen: Reasoning) -> Reasoning:
        """Keep of a choice what the model offers: the choice may have been made for another model."""
        effort = chosen.effort if chosen.effort in self.efforts else ""
        return Reasoning(effort, chosen.budget if self.budget else None)


def _levels(first: str, last: str) -> tuple[str, ...]:
    levels = tuple(level for level in EFFORTS if level != "minimal" or first == "minimal")
    return levels[levels.index(first) : levels.index(last) + 1]


NO_REASONING = ReasoningSupport(reasons=False)
FIXED = ReasoningSupport()

# https://developers.openai.com/api/docs/guides/reasoning, and what the API names in its refusals of other levels.
OPENAI: Mapping[str, ReasoningSupport] = {
    "gpt-3*": NO_REASONING,
    "gpt-4*": NO_REASONING,
    "chatgpt-4o*": NO_REASONING,
    "o1*": ReasoningSupport(efforts=_levels("low", "high"), default="medium"),
    "o1-mini*": FIXED,
    "o1-preview*": FIXED,
    "o3*": ReasoningSupport(efforts=_levels("low", "high"), default="medium"),
    "o4-mini*": ReasoningSupport(efforts=_levels("low", "high"), default="medium"),
    "gpt-5": ReasoningSupport(efforts=_levels("minimal", "high"), default="medium"),
    "gpt-5-20*": ReasoningSupport(efforts=_levels("minimal", "high"), default="medium"),
    "gpt-5-mini*": ReasoningSupport(efforts=_levels("minimal", "high"), default="medium"),
    "gpt-5-nano*": ReasoningSupport(efforts=_levels("minimal", "high"), default="medium"),
    "gpt-5-chat*": NO_REASONING,
    "gpt-5-codex*": ReasoningSupport(efforts=_levels("low", "high"), default="medium"),
    "gpt-5-pro*": FIXED,
    "gpt-5.1*": ReasoningSupport(efforts=_levels("none", "high"), default="none"),
    "gpt-5.1-chat*": FIXED,
    "gpt-5.1-codex*": ReasoningSupport(efforts=_levels("low", "high"), default="medium"),
    "gpt-5.1-codex-max*": ReasoningSupport(efforts=_levels("low", "xhigh"), default="medium"),
    "gpt-5.2*": ReasoningSupport(efforts=_levels("none", "xhigh"), default="none"),
    "gpt-5.2-chat*": FIXED,
    "gpt-5.2-codex*": ReasoningSupport(efforts=_levels("low", "xhigh"), default="medium"),
    "gpt-5.2-pro*": ReasoningSupport(efforts=_levels("medium", "xhigh")),
    "gpt-5.3-chat*": FIXED,
    "gpt-5.3-codex*": ReasoningSupport(efforts=_levels("low", "xhigh"), default="medium"),
    "gpt-5.4*": ReasoningSupport(efforts=_levels("none", "xhigh"), default="none"),
    "gpt-5.4-pro*": ReasoningSupport(efforts=_levels("medium", "xhigh")),
    "gpt-5.5*": ReasoningSupport(efforts=_levels("none", "xhigh"), default="medium"),
    "gpt-5.5-pro*": ReasoningSupport(efforts=_levels("medium", "xhigh")),
    "gpt-5.6*": ReasoningSupport(efforts=_levels("none", "max"), default="medium"),
    "gpt-6-astra*": ReasoningSupport(efforts=_levels("low", "max")),
    "gpt-6-sol*": ReasoningSupport(efforts=_levels("none", "max"), default="medium"),
    "gpt-6-luna*": ReasoningSupport(efforts=_levels("none", "max"), default="medium"),
    "gpt-6.1-sol*": ReasoningSupport(efforts=_levels("low", "max")),
    "gpt-6.1-terra*": ReasoningSupport(efforts=_levels("none", "max"), default="medium"),
    "gpt-oss*": ReasoningSupport(efforts=_levels("low", "high"), default="medium"),
}
_BUDGET = ReasoningSupport(budget=True)
_LATEST = ReasoningSupport(efforts=_levels("low", "max"), default="high", adaptive=True, always=True)
_LATEST_MEDIUM = ReasoningSupport(efforts=_levels("low", "max"), default="medium", adaptive=True, always=True)
# https://platform.claude.com/docs/en/build-with-claude/effort and …/thinking
ANTHROPIC: Mapping[str, ReasoningSupport] = {
    "claude-2*": NO_REASONING,
    "claude-instant*": NO_REASONING,
    "claude-3-*": NO_REASONING,
    "claude-3-7-*": _BUDGET,
    "claude-sonnet-4*": _BUDGET,
    "claude-opus-4*": _BUDGET,
    "claude-haiku-4*": _BUDGET,
    "claude-opus-4-5*": ReasoningSupport(efforts=_levels("low", "high"), default="high", budget=True),
    "claude-opus-4-6*": ReasoningSupport(
        efforts=("low", "medium", "high", "max"), default="high", budget=True, adaptive=True
    ),
    "claude-sonnet-4-6*": ReasoningSupport(
        efforts=("low", "medium", "high", "max"), default="high", budget=True, adaptive=True
    ),
    "claude-opus-4-7*": ReasoningSupport(efforts=_levels("low", "max"), default="high", adaptive=True),
    "claude-opus-4-8*": ReasoningSupport(efforts=_levels("low", "max"), default="high", adaptive=True),
    "claude-mythos-preview*": ReasoningSupport(
        efforts=("low", "medium", "high", "max"), default="high", adaptive=True, always=True
    ),
    "claude-sonnet-5*": _LATEST,
    "claude-opus-5*": _LATEST,
    "claude-opus-5-5*": _LATEST_MEDIUM,
    "claude-haiku-5*": _LATEST,
    "claude-haiku-5-5*": _LATEST_MEDIUM,
    "claude-fable-*": _LATEST,
    "claude-mythos-5*": _LATEST,
}
TABLES: Mapping[str, Mapping[str, ReasoningSupport]] = {"openai": OPENAI, "anthropic": ANTHROPIC}


def support_of(kind: str, model: str, efforts: tuple[str, ...] | None = None) -> ReasoningSupport | None:
    """Find what a model of a provider of that type offers; None where nothing is known of it.

    `efforts` are the levels that the configuration names for it, in place of the table's.
    """
    found = known(model, TABLES.get(kind, {}))
    if efforts is None:
        return found
    base = found or ReasoningSupport()
    default = base.default if base.default in efforts else ""
    return ReasoningSupport(bool(efforts), efforts, default, base.budget, base.adaptive, base.always)
