"""The models and agents that a user may see. Guests see only those of the sessions that they are in."""

from __future__ import annotations

from agents.registry import AgentPreset, ModelChoice
from chat.access import may_begin_sessions, memberships_of, sessions_of
from chat.agents_setup import registry
from chat.models import User
from chat.queries import presets


def models_for(user: User) -> list[ModelChoice]:
    """Return the models that a user may choose from or, as a guest, sees in sessions."""
    known = [choice for choice in registry().known_models() if choice.model]
    if may_begin_sessions(user):
        return known
    used = set(sessions_of(user).order_by().values_list("provider", "model").distinct())
    return [choice for choice in known if (choice.provider, choice.model) in used]


def agents_for(user: User, workspace_id: int | None = None) -> list[AgentPreset]:
    """Return the agents with which a user may start a session, the default one first. Guests start none.

    Members' agents are those of the workspace, by default the user's current one.
    """
    mine = list(memberships_of(user).order_by("pk").values_list("workspace_id", flat=True))
    if not mine and not may_begin_sessions(user):
        return []
    if workspace_id is None:
        workspace_id = user.workspace_id if user.workspace_id in mine else next(iter(mine), None)
    return presets.presets(user, workspace_id)
