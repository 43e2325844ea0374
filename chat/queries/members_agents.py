"""The agents that members of a workspace have made, as one member sees them."""

from __future__ import annotations

from dataclasses import dataclass

from chat.access import agents_in, may, may_change_agent
from chat.models import AgentPreset, User
from chat.permissions import Permission


@dataclass(frozen=True, slots=True)
class SeenAgent:
    """An agent of a workspace, and what the viewer may do with it."""

    row: AgentPreset
    is_mine: bool
    may_change: bool


def seen_agents(user: User, workspace_id: int) -> list[SeenAgent]:
    """Return the viewer's own agents, including archived ones, and those that others share, sorted by title.

    Archived agents of other members are included if the viewer manages agents.
    """
    is_manager = may(user, Permission.MANAGE_AGENTS, workspace_id)
    rows = agents_in(user, workspace_id).select_related("user")
    found = [SeenAgent(row, row.user_id == user.pk, may_change_agent(user, row, is_manager=is_manager)) for row in rows]
    shown = (each for each in found if each.may_change or each.row.archived_at is None)
    return sorted(shown, key=lambda each: (each.row.title.casefold(), each.row.name))
