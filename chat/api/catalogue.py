"""Models, agents and search."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from django.http import HttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from agents.reasoning import NO_REASONING
from agents.registry import ModelChoice
from chat.agents_setup import registry
from chat.api.auth import ApiRequest
from chat.api.responses import json_response
from chat.queries.offers import agents_for, models_for
from chat.queries.search import search

router = Router(tags=["Catalogue"])


class ModelOut(Schema):
    provider: str
    model: str
    context_window: int | None = Field(description="In tokens; null if unknown")
    reasoning_efforts: list[str] = Field(description="The levels that it takes, lowest first; empty if none is known")
    takes_thinking_budget: bool


class ModelList(Schema):
    models: list[ModelOut]


class AgentOut(Schema):
    """An agent that a session may begin with."""

    name: str
    title: str
    provider: str
    model: str
    tools: list[str]
    max_rounds: int = Field(description="Tool rounds in one turn")
    prompts: list[str] = Field(description="Suggestions for a first message")
    icon: str = Field(description="The icon beside the title; empty: the usual one")


class AgentList(Schema):
    """The default agent comes first."""

    agents: list[AgentOut]


class AgentQuery(Schema):
    workspace: int | None = Field(None, ge=1, le=2**53, description="Whose members' agents. Default: the current one")


class SearchQuery(Schema):
    q: str = Field(max_length=1000, examples=["release plan"], description="All words must occur, in any case")
    limit: int = Field(20, ge=1, le=50, description="The maximum of sessions, and of messages")


class SessionMatch(Schema):
    """A session whose title matches."""

    id: str
    title: str = Field(description="HTML with the matches in `<mark>`")
    workspace: int
    workspace_name: str
    archived: bool
    updated_at: datetime


class MessageMatch(Schema):
    """A message whose text matches."""

    id: str
    session_id: str
    session_title: str
    workspace: int
    workspace_name: str
    sender: str
    snippet: str = Field(description="HTML with the matches in `<mark>`")
    timestamp: datetime


class SearchResults(Schema):
    """The newest first."""

    sessions: list[SessionMatch]
    messages: list[MessageMatch]


@router.get("/models", response=ModelList, operation_id="listModels", summary="List models")
def list_models(request: ApiRequest) -> HttpResponse:
    """Models that the configured servers have listed. Guests get only the models of their sessions."""
    return json_response(request, {"models": [_model(each) for each in models_for(request.user)]})


def _model(choice: ModelChoice) -> dict[str, object]:
    support = registry().reasoning_support(choice.provider, choice.model) or NO_REASONING
    return {
        "provider": choice.provider,
        "model": choice.model,
        "context_window": choice.context_window,
        "reasoning_efforts": support.efforts,
        "takes_thinking_budget": support.budget,
    }


@router.get("/agents", response=AgentList, operation_id="listAgents", summary="List agents")
def list_agents(request: ApiRequest, query: Query[AgentQuery]) -> HttpResponse:
    """Each with the settings that a new session copies, and those that members of the workspace have made at the end.

    Guests cannot start sessions: their list is empty.
    """
    found = agents_for(request.user, query.workspace)
    agents = [{name: getattr(each, name) for name in AgentOut.model_fields} for each in found]
    return json_response(request, {"agents": agents})


@router.get("/search", response=SearchResults, operation_id="search", summary="Search sessions and messages")
def find(request: ApiRequest, query: Query[SearchQuery]) -> HttpResponse:
    """Search everything that you may see, archived sessions included."""
    results = search(request.user, query.q, query.limit)
    sessions = [{**asdict(each), "updated_at": each.updated_at.isoformat()} for each in results.sessions]
    messages = [{**asdict(each), "timestamp": each.timestamp.isoformat()} for each in results.messages]
    return json_response(request, {"sessions": sessions, "messages": messages})
