"""The agents that members of a workspace make and share."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from django.http import HttpResponse
from django.urls import reverse
from ninja import Router, Schema
from pydantic import Field

from agents.config import PromptConfig, PromptIcon
from agents.registry import opening
from chat.access import agent_in, agent_to_change, may, may_change_agent, workspace_where
from chat.api.auth import ApiRequest
from chat.api.parsing import Body
from chat.api.responses import if_match_revisions, json_response
from chat.commands import MAX_SYSTEM_PROMPT_LENGTH
from chat.models import AgentPreset
from chat.permissions import Permission
from chat.queries import presets
from chat.queries.members_agents import SeenAgent, seen_agents
from chat.queries.preset_prompts import MAX_PROMPT_LENGTH, MAX_PROMPTS
from chat.services.people import members_agents as service
from chat.services.people.members_agents import MAX_TITLE_LENGTH, USUAL_ICON, AgentSettings

router = Router(tags=["Workspaces"])
Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
ToolName = Annotated[Text, Field(max_length=200)]
TITLE = "The display name of the agent."
ICON = "The icon beside the agent's messages and in lists."
MODEL = (
    "The model, as `provider/model` or as the name of the model alone. An empty string means the default model of the "
    "server."
)
SYSTEM_PROMPT = "The system prompt, which the agent gets with each request."
TOOLS = "The names of the tools that the agent can call. `SERVER__*` means all tools of the MCP server `SERVER`."
PROMPTS = "Suggestions for the first message of a session."
SHARED = "Whether all members of the workspace can use the agent, or only the user who created it."
ARCHIVED = "Whether the agent is archived. New sessions cannot use an archived agent."


class OpeningPrompt(Body):
    """A suggestion for the first message of a session."""

    text: Annotated[
        Text,
        Field(min_length=1, max_length=MAX_PROMPT_LENGTH, description="The text that is sent as the first message."),
    ]
    title: Annotated[Text, Field(max_length=100, description="A heading above the text.")] = ""
    icon: PromptIcon = Field("message-square", description="The icon beside the suggestion on the home page.")


class MembersAgent(Schema):
    """An agent that a member of the workspace has created.

    To use it, pass its `name` as the `agent` of `createSession`.
    """

    name: str = Field(description="The name that identifies the agent.")
    title: str = Field(description="The display name of the agent.")
    icon: str = Field(description="The icon beside the agent's messages and in lists.")
    model: str = Field(description=MODEL)
    system_prompt: str = Field(description=SYSTEM_PROMPT)
    tools: list[str] = Field(
        description="The names of the tools that the agent can call. `SERVER__*` means all tools of the MCP server "
        "`SERVER`."
    )
    prompts: list[OpeningPrompt] = Field(description=PROMPTS)
    shared: bool = Field(description=SHARED)
    archived: bool = Field(description=ARCHIVED)
    made_by: str = Field(description="The name of the user who created the agent. Empty if the account was deleted.")
    made_by_id: int | None = Field(
        description="The id of the user who created the agent. Null if the account was deleted."
    )
    may_change: bool = Field(description="Whether you may change, share and archive the agent.")
    revision: int = Field(description="The number of the agent's current version. Each change raises it.")
    updated_at: datetime = Field(description="The time of the last change.")


class MembersAgents(Schema):
    """The agents of members of a workspace."""

    agents: list[MembersAgent] = Field(description="Your own agents, and the agents that other members share.")


class AgentIn(Body):
    """An agent to create."""

    title: Annotated[Text, Field(max_length=MAX_TITLE_LENGTH, description=TITLE)]
    icon: PromptIcon = Field("sparkles", description=ICON)
    model: Annotated[Text, Field(max_length=281, description=MODEL)] = ""
    system_prompt: Annotated[Text, Field(max_length=MAX_SYSTEM_PROMPT_LENGTH, description=SYSTEM_PROMPT)] = ""
    tools: list[ToolName] = Field(default_factory=list, max_length=500, description=TOOLS)
    prompts: list[OpeningPrompt] = Field(default_factory=list, max_length=MAX_PROMPTS, description=PROMPTS)


class AgentChange(Body):
    """Changes of an agent. Fields that are left out or null keep their values."""

    title: Text | None = Field(None, max_length=MAX_TITLE_LENGTH, description=TITLE)
    icon: PromptIcon | None = Field(None, description=ICON)
    model: Text | None = Field(None, max_length=281, description=MODEL)
    system_prompt: Text | None = Field(None, max_length=MAX_SYSTEM_PROMPT_LENGTH, description=SYSTEM_PROMPT)
    tools: list[ToolName] | None = Field(None, max_length=500, description=TOOLS)
    prompts: list[OpeningPrompt] | None = Field(None, max_length=MAX_PROMPTS, description=PROMPTS)
    shared: bool | None = Field(None, description=SHARED)
    archived: bool | None = Field(None, description=ARCHIVED)
    revision: int | None = Field(
        None,
        description="The `revision` of the agent that you have read. If the agent was changed since, the request is "
        "refused as `agent_changed`.",
    )


@router.get(
    "/workspaces/{workspace_id}/agents",
    response=MembersAgents,
    operation_id="listMembersAgents",
    summary="List the agents of members",
)
def list_agents(request: ApiRequest, workspace_id: int) -> HttpResponse:
    """List your own agents, including archived ones, and the agents that other members share with the workspace."""
    workspace = workspace_where(request.user, Permission.MAKE_AGENTS, workspace_id)
    return json_response(request, {"agents": [_agent_json(each) for each in seen_agents(request.user, workspace.pk)]})


@router.post(
    "/workspaces/{workspace_id}/agents",
    response={201: MembersAgent},
    operation_id="makeAgent",
    summary="Create an agent",
)
def make_agent(request: ApiRequest, workspace_id: int, body: AgentIn) -> HttpResponse:
    """Create an agent. Only you can use it until you share it. You can have up to 50 agents in a workspace."""
    row = service.make(author=request.user, workspace_id=workspace_id, given=_settings(body.model_dump()))
    return _one(request, row, HTTPStatus.CREATED)


@router.get(
    "/workspaces/{workspace_id}/agents/{agent_name}",
    response=MembersAgent,
    operation_id="getMembersAgent",
    summary="Retrieve an agent of a member",
)
def get_agent(request: ApiRequest, workspace_id: int, agent_name: str) -> HttpResponse:
    """Return one of your own agents, or an agent that is shared with the workspace."""
    workspace = workspace_where(request.user, Permission.MAKE_AGENTS, workspace_id)
    return _one(request, agent_in(request.user, workspace.pk, agent_name))


@router.patch(
    "/workspaces/{workspace_id}/agents/{agent_name}",
    response=MembersAgent,
    operation_id="changeAgent",
    summary="Change an agent",
)
def change_agent(request: ApiRequest, workspace_id: int, agent_name: str, body: AgentChange) -> HttpResponse:
    """Change, share or archive an agent. Existing sessions keep their copies of the agent.

    Only the user who created an agent may change it, and owners and admins of the workspace if it is shared.
    """
    read = agent_to_change(request.user, workspace_id, agent_name)
    row = service.update(
        author=request.user,
        workspace_id=workspace_id,
        name=agent_name,
        given=_settings_with(read, body.model_dump(exclude_none=True)),
        shared=body.shared,
        archived=body.archived,
        seen=if_match_revisions(request),
        # The settings that the request leaves out are those that were read. A change in the meantime must not be lost.
        revision=read.revision if body.revision is None else body.revision,
    )
    return _one(request, row)


@router.post(
    "/workspaces/{workspace_id}/agents/{agent_name}/copy",
    response={201: MembersAgent},
    operation_id="copyAgent",
    summary="Copy an agent",
)
def copy_agent(request: ApiRequest, workspace_id: int, agent_name: str) -> HttpResponse:
    """Copy an agent that you may use, including the agents that `listAgents` returns.

    Only you can use the copy until you share it.
    """
    return _one(
        request, service.copy(author=request.user, workspace_id=workspace_id, name=agent_name), HTTPStatus.CREATED
    )


def _settings(values: dict[str, Any]) -> AgentSettings:
    return AgentSettings(**{**values, "prompts": [opening(PromptConfig(**each)) for each in values["prompts"]]})


def _settings_with(row: AgentPreset, changes: dict[str, Any]) -> AgentSettings | None:
    """Return the agent's settings with `changes` applied, or None if `changes` contains no setting."""
    names = ("title", "icon", "model", "system_prompt", "tools", "prompts")
    given = {name: changes[name] for name in names if name in changes}
    if not given:
        return None
    return _settings({**{name: _values(row)[name] for name in names}, **given})


def _values(row: AgentPreset) -> dict[str, Any]:
    prompts = [
        {"text": str(each), "title": each.heading, "icon": each.icon} for each in presets.prompts_of(row.prompts)
    ]
    names = ("name", "title", "model", "system_prompt", "tools", "revision")
    return {**{name: getattr(row, name) for name in names}, "icon": row.icon or USUAL_ICON, "prompts": prompts}


def _agent_json(seen: SeenAgent) -> dict[str, Any]:
    row = seen.row
    return {
        **_values(row),
        "shared": row.is_shared,
        "archived": row.archived_at is not None,
        "made_by": row.user.sender if row.user else "",
        "made_by_id": row.user_id,
        "may_change": seen.may_change,
        "updated_at": row.updated_at.isoformat(),
    }


def _one(request: ApiRequest, row: AgentPreset, status: int = HTTPStatus.OK) -> HttpResponse:
    is_manager = may(request.user, Permission.MANAGE_AGENTS, row.workspace_id or 0)
    may_change = may_change_agent(request.user, row, is_manager=is_manager)
    seen = SeenAgent(row, row.user_id == request.user.pk, may_change)
    is_new = status == HTTPStatus.CREATED
    location = reverse("api:get_agent", args=[row.workspace_id, row.name]) if is_new else ""
    return json_response(request, _agent_json(seen), revision=row.revision, status=status, location=location)
