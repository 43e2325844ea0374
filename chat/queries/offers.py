"""Which models and agents a user may know of: guests only those of the sessions that they are in."""

from __future__ import annotations

from agents.registry import AgentPreset, ModelChoice
from chat.access import may_begin_sessions, sessions_of
from chat.agents_setup import registry
from chat.models import User
from chat.queries import presets


def models_for(user: User) -> list[ModelChoice]:
    """Return the models that a user may choose from, or is shown as a guest."""
    known = [choice for choice in registry().known_models() if choice.model]
    if may_begin_sessions(user):
        return known
    used = set(sessions_of(user).order_by().values_list("provider", "model").distinct())
    return [choice for choice in known if (choice.provider, choice.model) in used]


def agents_for(user: User) -> list[AgentPreset]:
    """Return the agents with which a user may start a session, the default one first; guests start none."""
    return presets.presets() if may_begin_sessions(user) else []
