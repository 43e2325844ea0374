"""The picker of agents and models: of a session, and of home for a new one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.reasoning import Reasoning, ReasoningSupport
from agents.registry import ModelChoice
from chat.access import may_begin_sessions, require_no_guest, session_for
from chat.agents_setup import registry
from chat.errors import NotForGuests
from chat.models import Session, SessionRole
from chat.queries import presets, reasoning
from chat.rendering.text.formatting import EFFORT_LEVELS
from chat.views.requests import SignedInRequest, signed_in

# With more choices, the picker has a search field.
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
        **_choices(row.agent, row.provider, row.model),
        "missing": _is_missing(row),
        **_reasoning_choices(reasoning.offered(row), reasoning.applied(row)),
    }
    return render(request, "chat/session/models.html", values)


@never_cache
@require_GET
@signed_in
def models_of_new(request: SignedInRequest) -> HttpResponse:
    """Show the agents and models that a new session may use; `?agent=` and `?model=` are what the form has."""
    if not may_begin_sessions(request.user):
        raise NotForGuests
    chosen = presets.offered(request.GET.get("agent", "")) or presets.presets()[0]
    provider, _slash, model = request.GET.get("model", "").partition("/")
    values = _choices(chosen.name, provider, model) if model else _choices(chosen.name, chosen.provider, chosen.model)
    return render(request, "chat/session/models.html", values)


def _choices(agent: str, provider: str, model: str) -> dict[str, Any]:
    """List the agents, if there are several, and the models; the arguments are what is chosen now."""
    agents = presets.presets()
    several = len({agent, *(each.name for each in agents)}) > 1
    known = [choice for choice in registry().known_models() if choice.model]
    return {
        "agents": agents if several else [],
        "agent": agent,
        "provider": provider,
        "model": model,
        "models": _grouped(known),
        "many": len(known) + len(agents) * several > GLANCE,
    }


def _grouped(known: list[ModelChoice]) -> list[ModelGroup]:
    groups: dict[str, list[ModelChoice]] = {}
    for choice in known:
        groups.setdefault(choice.provider, []).append(choice)
    return [ModelGroup(provider, choices) for provider, choices in groups.items()]


def _reasoning_choices(support: ReasoningSupport, chosen: Reasoning) -> dict[str, Any]:
    """List the levels and budgets to choose from, the session's own budget among them; empty where there are none."""
    budgets = sorted({*BUDGETS, chosen.budget or BUDGETS[0]}) if support.budget else []
    return {
        "efforts": [(effort, EFFORT_LEVELS[effort]) for effort in support.efforts],
        "default_effort": EFFORT_LEVELS.get(support.default, ""),
        "budgets": budgets,
        "chosen": chosen,
    }


def _is_missing(row: Session) -> bool:
    return bool(row.model) and not registry().offers(row.provider, row.model)
