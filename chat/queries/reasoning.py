"""The reasoning that a session's model offers, and that the session has chosen."""

from __future__ import annotations

from django.utils.translation import gettext as _

from agents.reasoning import MIN_BUDGET, NO_REASONING, Reasoning, ReasoningSupport
from chat.agents_setup import registry
from chat.errors import Invalid
from chat.models import Session


def offered(session: Session) -> ReasoningSupport:
    """Return the reasoning that the session's model offers; NO_REASONING if that is not known."""
    return registry().reasoning_support(session.provider, session.model) or NO_REASONING


def applied(session: Session) -> Reasoning:
    """Return the session's choice, as far as its model offers it, because it may have been made for another model."""
    return offered(session).applied(Reasoning.of(session.config_values))


def changed(present: Reasoning, effort: str | None, budget: int | None) -> Reasoning:
    """Return a changed choice. None keeps a part as it is; "" and 0 leave it to the model."""
    return Reasoning(present.effort if effort is None else effort, present.budget if budget is None else budget or None)


def check(provider: str, model: str, effort: str | None, budget: int | None) -> None:
    """Check a choice against what a model offers. Raise Invalid."""
    support = registry().reasoning_support(provider, model) or NO_REASONING
    if effort and effort not in support.efforts:
        words = _("“%(model)s” doesn’t support the reasoning effort “%(effort)s”.")
        raise Invalid(words % {"model": model, "effort": effort})
    if budget and not support.budget:
        raise Invalid(_("“%(model)s” doesn’t support a thinking budget.") % {"model": model})
    if budget and not MIN_BUDGET <= budget <= support.largest_budget:
        words = _("The thinking budget must be %(least)s to %(most)s tokens.")
        raise Invalid(words % {"least": f"{MIN_BUDGET:,}", "most": f"{support.largest_budget:,}"})
