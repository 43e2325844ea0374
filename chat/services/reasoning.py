"""How much the model of a session reasons: what people may choose, and choosing it."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from agents.reasoning import LARGEST_BUDGET, NO_REASONING, SMALLEST_BUDGET, Reasoning, ReasoningSupport
from chat.agents_setup import registry
from chat.models import Session, SessionRevision, User
from chat.services.changing import change_config, config_of
from chat.services.errors import Invalid
from chat.services.rows import OpenSession


@transaction.atomic
def set_reasoning(*, session: Session, author: User, effort: str | None = None, budget: int | None = None) -> None:
    """Choose how much the model of the next response reasons: its effort, its thinking budget in tokens, or both.

    None leaves one as it is, "" and 0 leave it to the model. Raises Invalid for what the model does not offer.
    """
    opened = OpenSession.lock(session.pk)
    check(opened.session.provider, opened.session.model, effort, budget)
    chosen = changed(Reasoning.of(config_of(opened.session)), effort, budget)
    change_config(opened, author, SessionRevision.Kind.REASONING, **chosen.to_config())


def offered(session: Session) -> ReasoningSupport:
    """What the session's model offers; nothing where that is not known."""
    return registry().reasoning_support(session.provider, session.model) or NO_REASONING


def applied(session: Session) -> Reasoning:
    """The session's choice, as far as its model offers it: it may have been made for another model."""
    return offered(session).applied(Reasoning.of(config_of(session)))


def changed(present: Reasoning, effort: str | None, budget: int | None) -> Reasoning:
    """Change a choice: None leaves a part of it as it is, "" and 0 leave it to the model."""
    return Reasoning(present.effort if effort is None else effort, present.budget if budget is None else budget or None)


def check(provider: str, model: str, effort: str | None, budget: int | None) -> None:
    """Check a choice against what a model offers. Raises Invalid."""
    support = registry().reasoning_support(provider, model) or NO_REASONING
    if effort and effort not in support.efforts:
        words = _("“%(model)s” does not take the reasoning effort “%(effort)s”.")
        raise Invalid(words % {"model": model, "effort": effort})
    if budget and not support.budget:
        raise Invalid(_("“%(model)s” does not take a thinking budget.") % {"model": model})
    if budget and not SMALLEST_BUDGET <= budget <= LARGEST_BUDGET:
        words = _("A thinking budget has %(least)s to %(most)s tokens.")
        raise Invalid(words % {"least": f"{SMALLEST_BUDGET:,}", "most": f"{LARGEST_BUDGET:,}"})
