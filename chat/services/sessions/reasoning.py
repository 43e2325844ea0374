"""Choose how much the model of a session reasons."""

from __future__ import annotations

from django.db import transaction

from agents.reasoning import Reasoning
from chat.models import Session, SessionRevision, User
from chat.queries.reasoning import changed, check
from chat.services.sessions.fields import change_config
from chat.services.transaction import SessionTransaction


@transaction.atomic
def set_reasoning(*, session: Session, author: User, effort: str | None = None, budget: int | None = None) -> None:
    """Choose how much the model of the next response reasons: its effort, its thinking budget in tokens, or both.

    None leaves one as it is, "" and 0 leave it to the model. Raises Invalid for what the model does not offer.
    """
    tx = SessionTransaction.lock(session.pk)
    check(tx.session.provider, tx.session.model, effort, budget)
    chosen = changed(Reasoning.of(tx.session.config_values), effort, budget)
    change_config(tx, author, SessionRevision.Kind.REASONING, **chosen.to_config())
