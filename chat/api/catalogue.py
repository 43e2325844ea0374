"""What there is to choose from, and to find: models, agents, words."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from django.http import HttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from agents.registry import ModelChoice
from chat.api.answers import answer
from chat.api.auth import ApiRequest
from chat.services.offers import agents_for, models_for
from chat.services.searching import search

router = Router(tags=["catalogue"])


class Models(Schema):
    """The models that a session may use, as far as their servers have told."""

    models: list[ModelChoice]


class Agent(Schema):
    """An agent that a session may begin with; `prompts` are what one might say to it first."""

    name: str
    title: str
    provider: str
    model: str
    tools: list[str]
    prompts: list[str]


class Agents(Schema):
    """All of them, the default one first."""

    agents: list[Agent]


class SearchQuery(Schema):
    """All of the words must be there, anywhere in others, in capitals or not."""

    q: str = Field(max_length=1000, examples=["release plan"])
    limit: int = Field(20, ge=1, le=50, description="So many sessions, and as many messages")


class FoundSession(Schema):
    """A session by its title, which is HTML with the words in `<mark>`."""

    id: str
    title: str
    workspace: int
    workspace_name: str
    archived: bool
    updated_at: datetime


class FoundMessage(Schema):
    """A message by its text; `snippet` is HTML with the words in `<mark>`."""

    id: str
    session_id: str
    session_title: str
    workspace: int
    workspace_name: str
    sender: str
    snippet: str
    timestamp: datetime


class Found(Schema):
    """What was found, the newest first."""

    sessions: list[FoundSession]
    messages: list[FoundMessage]


@router.get("/models", response=Models, operation_id="listModels", summary="List models")
def list_models(request: ApiRequest) -> HttpResponse:
    """With their context windows in tokens, where they are known. Guests see the models of their sessions."""
    return answer(request, {"models": [asdict(each) for each in models_for(request.user)]})


@router.get("/agents", response=Agents, operation_id="listAgents", summary="List agents")
def list_agents(request: ApiRequest) -> HttpResponse:
    """With the model that each begins with. Guests start no sessions, and see none."""
    known = agents_for(request.user)
    names = ("name", "title", "provider", "model", "tools", "prompts")
    return answer(request, {"agents": [{name: getattr(each, name) for name in names} for each in known]})


@router.get("/search", response=Found, operation_id="search", summary="Find sessions and messages")
def find(request: ApiRequest, query: Query[SearchQuery]) -> HttpResponse:
    """In all that you may see, archived sessions too."""
    found = search(request.user, query.q, query.limit)
    sessions = [{**asdict(each), "updated_at": each.updated_at.isoformat()} for each in found.sessions]
    messages = [{**asdict(each), "timestamp": each.timestamp.isoformat()} for each in found.messages]
    return answer(request, {"sessions": sessions, "messages": messages})
