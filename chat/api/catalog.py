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
from chat.api import message_fields
from chat.api.auth import ApiRequest, workspace_of
from chat.api.responses import json_response
from chat.queries.offers import agents_for, models_for
from chat.queries.search import search

router = Router(tags=["Catalogue"])


class ModelOut(Schema):
    """A model that sessions can use."""

    provider: str = Field(description="The name of the provider.")
    model: str = Field(description="The name of the model.")
    context_window: int | None = Field(description="The maximum number of tokens of a request. Null if unknown.")
    reasoning_efforts: list[str] = Field(
        description="The reasoning levels that the model offers, lowest first. Empty if it offers none."
    )
    takes_thinking_budget: bool = Field(description="Whether a session can set a `thinking_budget` for the model.")


class ModelList(Schema):
    """The models of the server."""

    models: list[ModelOut] = Field(description="The models.")


class AgentOut(Schema):
    """An agent with which a session can be started."""

    name: str = Field(description="The name that identifies the agent.")
    title: str = Field(description="The display name of the agent.")
    provider: str = Field(description="The name of the provider of the agent's model.")
    model: str = Field(description="The name of the agent's model.")
    tools: list[str] = Field(
        description="The names of the tools that the agent can call. `SERVER__*` means all tools of the MCP server "
        "`SERVER`."
    )
    max_rounds: int = Field(description="The maximum number of rounds of tool calls in one turn.")
    prompts: list[str] = Field(description="Suggestions for the first message of a session.")
    icon: str = Field(
        description="The name of the icon beside the agent's title. Empty if the agent has the default icon."
    )


class AgentList(Schema):
    """The agents with which you can start sessions."""

    agents: list[AgentOut] = Field(description="The agents, beginning with the default agent.")


class AgentQuery(Schema):
    workspace: int | None = Field(
        None,
        ge=1,
        le=2**53,
        description="The id of the workspace whose members' agents are included. If null, it is your current "
        "workspace.",
    )


class SearchQuery(Schema):
    q: str = Field(
        max_length=1000,
        examples=["release plan"],
        description="Words that must all occur, in upper or lower case. Parts of words are found, too. Only the first "
        "8 words count, and the first 100 characters of each.",
    )
    limit: int = Field(
        20, ge=1, le=50, description="The maximum number of sessions, and the maximum number of messages."
    )


class SessionMatch(Schema):
    """A session whose title contains all words."""

    id: str = Field(description="The id of the session.")
    title: str = Field(description="The title as HTML, with the matches in `<mark>`.")
    workspace: int = Field(description="The id of the workspace of the session.")
    workspace_name: str = Field(description="The name of the workspace.")
    archived: bool = Field(description="Whether the session is archived.")
    updated_at: datetime = Field(description="The time of the last activity in the session.")


class MessageMatch(Schema):
    """A message that contains all words."""

    id: str = Field(description="The id of the message.")
    session_id: str = Field(description="The id of the session.")
    session_title: str = Field(description="The title of the session.")
    workspace: int = Field(description="The id of the workspace of the session.")
    workspace_name: str = Field(description="The name of the workspace.")
    sender: str = Field(description="The name of the author.")
    snippet: str = Field(description="A part of the text as HTML, with the matches in `<mark>`.")
    timestamp: message_fields.BeganAt


class SearchResults(Schema):
    """The sessions and messages that were found."""

    sessions: list[SessionMatch] = Field(description="The sessions, beginning with the best matches.")
    messages: list[MessageMatch] = Field(description="The messages, beginning with the best matches.")


@router.get("/models", response=ModelList, operation_id="listModels", summary="List models")
def list_models(request: ApiRequest) -> HttpResponse:
    """List the models that sessions can use. Guests get only the models of sessions that are shared with them."""
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
    """List the agents with which you can start sessions, with the settings that a new session copies.

    The agents that members of the workspace have created come last. Without `workspace`, the list is empty for guests,
    who cannot create sessions.
    """
    workspace = workspace_of(request, query.workspace)
    found = agents_for(request.user, workspace.pk if workspace else None)
    agents = [{name: getattr(each, name) for name in AgentOut.model_fields} for each in found]
    return json_response(request, {"agents": agents})


@router.get("/search", response=SearchResults, operation_id="search", summary="Search sessions and messages")
def find(request: ApiRequest, query: Query[SearchQuery]) -> HttpResponse:
    """Search the titles and messages of all sessions that you can see, including archived sessions."""
    results = search(request.user, query.q, query.limit)
    sessions = [{**asdict(each), "updated_at": each.updated_at.isoformat()} for each in results.sessions]
    messages = [{**asdict(each), "timestamp": each.timestamp.isoformat()} for each in results.messages]
    return json_response(request, {"sessions": sessions, "messages": messages})
