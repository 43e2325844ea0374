"""The picker of agents and models, for a session and for a new session on the home page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.reasoning import Reasoning, ReasoningSupport
from agents.registry import ModelChoice
from chat.access import may, may_begin_sessions, require_no_guest, session_for
from chat.agents_setup import registry
from chat.errors import NotForGuests
from chat.models import SessionRole, User
from chat.permissions import Permission
from chat.queries import presets, reasoning
from chat.rendering.text.formatting import EFFORT_LEVELS
from chat.services.people.workspaces import listed_workspaces
from chat.views.requests import SignedInRequest, number, signed_in

# The picker has a search field if there are more choices than this.
GLANCE = 8
# Thinking budgets that the picker offers, in tokens.
BUDGETS = (2_000, 4_000, 8_000, 16_000, 32_000, 64_000)


@dataclass(frozen=True, slots=True)
class ModelGroup:
    """The models of one provider."""

    provider: str
    models: list[ModelChoice]


@never_cache
@require_GET
@signed_in
def models(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Show the agents and models that a session may use."""
    row, _role = session_for(request.user, session_id, SessionRole.EDITOR)
    require_no_guest(request.user, row)
    values = {
        **_choices(request.user, row.workspace_id, (row.agent, row.provider, row.model)),
        "missing": bool(row.model) and not registry().offers(row.provider, row.model),
        **_reasoning_choices(reasoning.offered(row), reasoning.applied(row)),
    }
    return render(request, "chat/session/models.html", values)


@never_cache
@require_GET
@signed_in
def models_of_new(request: SignedInRequest) -> HttpResponse:
    """Show the agents and models that a new session in `?workspace=` (default: the current one) may use.

    `?agent=` and `?model=` are the present choices in the form.
    """
    if not may_begin_sessions(request.user):
        raise NotForGuests
    here = listed_workspaces(request.user, number(request.GET.get("workspace", ""))).here
    workspace = here.id if here else None
    chosen = presets.offered_preset(request.GET.get("agent", ""), request.user, workspace) or presets.presets()[0]
    provider, _slash, model = request.GET.get("model", "").partition("/")
    now = (provider, model) if model else (chosen.provider, chosen.model)
    return render(request, "chat/session/models.html", _choices(request.user, workspace, (chosen.name, *now)))


def _choices(user: User, workspace_id: int | None, now: tuple[str, str, str]) -> dict[str, Any]:
    """Return the agents, if there are several, and the models. `now` is the chosen agent, provider and model."""
    agent, provider, model = now
    agents = presets.presets(user, workspace_id)
    several = len({agent, *(each.name for each in agents)}) > 1
    known = [choice for choice in registry().known_models() if choice.model]
    return {
        "agents": agents if several else [],
        "agent": agent,
        "provider": provider,
        "model": model,
        "models": _grouped(known),
        "workspace": workspace_id if workspace_id and may(user, Permission.MAKE_AGENTS, workspace_id) else None,
        "many": len(known) + len(agents) * several > GLANCE,
    }


def _grouped(known: list[ModelChoice]) -> list[ModelGroup]:
    groups: dict[str, list[ModelChoice]] = {}
    for choice in known:
        groups.setdefault(choice.provider, []).append(choice)
    return [ModelGroup(provider, choices) for provider, choices in groups.items()]


def _reasoning_choices(support: ReasoningSupport, chosen: Reasoning) -> dict[str, Any]:
    """Return the effort levels and thinking budgets to choose from, including the session's own budget.

    A list is empty if the model does not support that setting.
    """
    fitting = [budget for budget in BUDGETS if budget <= support.largest_budget]
    budgets = sorted({*fitting, chosen.budget or BUDGETS[0]}) if support.budget else []
    return {
        "efforts": [(effort, EFFORT_LEVELS[effort]) for effort in support.efforts],
        "default_effort": EFFORT_LEVELS.get(support.default, ""),
        "budgets": budgets,
        "chosen": chosen,
    }
