"""The amount of a model's reasoning before it answers: the choices that models offer, and the choice that was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from agents.model_table import find_fact

# The vendors' names of effort levels, lowest first.
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[str, ...] = get_args(Effort)
# In tokens. Anthropic refuses a smaller thinking budget, and no model writes more than the largest one.
MIN_BUDGET = 1_024
MAX_BUDGET = 128_000
# The tokens that the largest budget of a model leaves for the answer.
ANSWER_ROOM = 4_000


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A choice. An empty `effort` and a `budget` (in tokens) of None leave it to the model."""

    effort: str = ""
    budget: int | None = None

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Reasoning:
        """Read the choice in a session's `config`. Invalid values count as no choice."""
        effort, budget = config.get("reasoning_effort"), config.get("thinking_budget")
        is_budget = type(budget) is int and MIN_BUDGET <= budget <= MAX_BUDGET
        return cls(str(effort) if effort in EFFORTS else "", budget if is_budget else None)

    def to_config(self) -> dict[str, Any]:
        """Return the choice in the form that a session's `config` stores."""
        return {"reasoning_effort": self.effort, "thinking_budget": self.budget}


UNCHOSEN = Reasoning()


@dataclass(frozen=True, slots=True)
class ReasoningSupport:
    """The choices that a model offers.

    `reasons`: it can reason. `efforts`: the levels that a request may set, lowest first; `default` is the level if it
    sets none. `budget`: a request may set a number of thinking tokens; `most_tokens` is what the model writes at most,
    with its thinking. `adaptive`: the model chooses how much to think (Anthropic); with `always`, it does so unless a
    request disables it.
    """

    reasons: bool = True
    efforts: tuple[str, ...] = ()
    default: str = ""
    budget: bool = False
    adaptive: bool = False
    always: bool = False
    most_tokens: int = MAX_BUDGET

    @property
    def largest_budget(self) -> int:
        """The largest thinking budget that leaves room for an answer."""
        return self.most_tokens - ANSWER_ROOM

    @property
    def least(self) -> Reasoning:
        """The choice with the least reasoning. It is UNCHOSEN if the model only thinks when a request asks for it."""
        asks = self.adaptive and not self.always
        return Reasoning(self.efforts[0]) if self.efforts and not asks else UNCHOSEN

    def applied(self, chosen: Reasoning) -> Reasoning:
        """Return the part of a choice that the model offers, because it may have been made for another model."""
        effort = chosen.effort if chosen.effort in self.efforts else ""
        budget = chosen.budget if self.budget else None
        return Reasoning(effort, min(budget, self.largest_budget) if budget else None)


def _levels(first: str, last: str) -> tuple[str, ...]:
    levels = tuple(level for level in EFFORTS if level != "minimal" or first == "minimal")
    return levels[levels.index(first) : levels.index(last) + 1]


NO_REASONING = ReasoningSupport(reasons=False)
FIXED = ReasoningSupport()

# From https://developers.openai.com/api/docs/guides/reasoning, and from the API's refusals of other levels.
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
    "gpt-6*": ReasoningSupport(efforts=_levels("low", "max")),
    "gpt-6-sol*": ReasoningSupport(efforts=_levels("none", "max"), default="medium"),
    "gpt-6-luna*": ReasoningSupport(efforts=_levels("none", "max"), default="medium"),
    "gpt-6.1-terra*": ReasoningSupport(efforts=_levels("none", "max"), default="medium"),
    "gpt-oss*": ReasoningSupport(efforts=_levels("low", "high"), default="medium"),
}
_BUDGET = ReasoningSupport(budget=True, most_tokens=64_000)
_LATEST = ReasoningSupport(efforts=_levels("low", "max"), default="high", adaptive=True, always=True)
_LATEST_MEDIUM = ReasoningSupport(efforts=_levels("low", "max"), default="medium", adaptive=True, always=True)
# https://platform.claude.com/docs/en/build-with-claude/effort and …/thinking, and “Max output” of
# https://platform.claude.com/docs/en/models/haiku-4-5/overview and the pages of the other models
ANTHROPIC: Mapping[str, ReasoningSupport] = {
    "claude-2*": NO_REASONING,
    "claude-instant*": NO_REASONING,
    "claude-3-*": NO_REASONING,
    "claude-3-7-*": _BUDGET,
    "claude-sonnet-4*": _BUDGET,
    "claude-opus-4*": replace(_BUDGET, most_tokens=32_000),
    "claude-haiku-4*": _BUDGET,
    "claude-opus-4-5*": replace(_BUDGET, efforts=_levels("low", "high"), default="high"),
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


def support_of(
    kind: str, model: str, efforts: tuple[str, ...] | None = None, stated: ReasoningSupport | None = None
) -> ReasoningSupport | None:
    """Return the choices of a model by the type of its provider and its name, or None if they are unknown.

    `stated` counts for models that the table does not have. `efforts` are the levels in the configuration. They replace
    those of the table or of `stated`.
    """
    found = find_fact(model, TABLES.get(kind, {})) or stated
    if efforts is None:
        return found
    base = found or ReasoningSupport()
    default = base.default if base.default in efforts else ""
    return replace(base, reasons=bool(efforts), efforts=efforts, default=default)
