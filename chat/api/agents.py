"""The agents that members of a workspace make and share."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from django.http import HttpResponse
from ninja import Router, Schema
from pydantic import Field

from agents.config import PromptConfig, PromptIcon
from agents.registry import opening
from chat.access import agent_in, agent_to_change, may, may_change_agent, workspace_where
from chat.api.auth import ApiRequest
from chat.api.parsing import Body
from chat.api.responses import json_response
from chat.commands import LONGEST_PROMPT
from chat.models import AgentPreset
from chat.permissions import Permission
from chat.queries import presets
from chat.queries.members_agents import SeenAgent, seen_agents
from chat.queries.preset_prompts import MAX_PROMPT_LENGTH, MAX_PROMPTS
from chat.services.people import members_agents as service
from chat.services.people.members_agents import LONGEST_TITLE, USUAL_ICON, AgentSettings

router = Router(tags=["Workspaces"])
Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
ToolName = Annotated[Text, Field(max_length=200)]
TITLE = "What people see"
ICON = "What people see beside its messages and in lists"
MODEL = "As provider/model, or the name of a model alone; empty: the default model"
SYSTEM_PROMPT = "Its instructions"
TOOLS = "Names of tools; `server__*` means all tools of an MCP server"
PROMPTS = "Suggestions for the first message"
SHARED = "Whether all members of the workspace can use it, or only its maker"
ARCHIVED = "Whether new sessions can use it no longer"


class OpeningPrompt(Body):
    """A suggestion for the first message."""

    text: Annotated[Text, Field(min_length=1, max_length=MAX_PROMPT_LENGTH, description="What is sent")]
    title: Annotated[Text, Field(max_length=100, description="A heading above the text")] = ""
    icon: PromptIcon = Field("message-square", description="What the home page shows beside it")


class MembersAgent(Schema):
    """An agent that a member has made. `name` is what sessions begin with, `title` what people see."""

    name: str
    title: str
    icon: str
    model: str = Field(description=MODEL)
    system_prompt: str = Field(description=SYSTEM_PROMPT)
    tools: list[str]
    prompts: list[OpeningPrompt] = Field(description=PROMPTS)
    shared: bool = Field(description=SHARED)
    archived: bool = Field(description=ARCHIVED)
    made_by: str = Field(description="The name of its maker; empty if they have left Parley")
    made_by_id: int | None
    may_change: bool = Field(description="Whether you may change, share and archive it")
    revision: int = Field(description="Counts its changes")
    updated_at: datetime


class MembersAgents(Schema):
    agents: list[MembersAgent]


class AgentIn(Body):
    title: Annotated[Text, Field(max_length=LONGEST_TITLE, description=TITLE)]
    icon: PromptIcon = Field("sparkles", description=ICON)
    model: Annotated[Text, Field(max_length=281, description=MODEL)] = ""
    system_prompt: Annotated[Text, Field(max_length=LONGEST_PROMPT, description=SYSTEM_PROMPT)] = ""
    tools: list[ToolName] = Field(default_factory=list, max_length=500, description=TOOLS)
    prompts: list[OpeningPrompt] = Field(default_factory=list, max_length=MAX_PROMPTS, description=PROMPTS)


class AgentChange(Body):
    """What is left out stays as it is."""

    title: Text | None = Field(None, max_length=LONGEST_TITLE, description=TITLE)
    icon: PromptIcon | None = Field(None, description=ICON)
    model: Text | None = Field(None, max_length=281, description=MODEL)
    system_prompt: Text | None = Field(None, max_length=LONGEST_PROMPT, description=SYSTEM_PROMPT)
    tools: list[ToolName] | None = Field(None, max_length=500, description=TOOLS)
    prompts: list[OpeningPrompt] | None = Field(None, max_length=MAX_PROMPTS, description=PROMPTS)
    shared: bool | None = Field(None, description=SHARED)
    archived: bool | None = Field(None, description=ARCHIVED)
    revision: int | None = Field(None, description="Refuse the change as `agent_changed` if this is not its revision")


@router.get(
    "/workspaces/{workspace_id}/agents",
    response=MembersAgents,
    operation_id="listMembersAgents",
    summary="List the agents of members",
)
def list_agents(request: ApiRequest, workspace_id: int) -> HttpResponse:
    """Your own, archived ones too, and those that others share with the workspace."""
    workspace = workspace_where(request.user, Permission.MAKE_AGENTS, workspace_id)
    return json_response(request, {"agents": [_told(each) for each in seen_agents(request.user, workspace.pk)]})


@router.post(
    "/workspaces/{workspace_id}/agents",
    response={201: MembersAgent},
    operation_id="makeAgent",
    summary="Make an agent",
)
def make_agent(request: ApiRequest, workspace_id: int, body: AgentIn) -> HttpResponse:
    """Only you can use it until you share it."""
    row = service.make(author=request.user, workspace_id=workspace_id, given=_settings(body.model_dump()))
    return _one(request, row, HTTPStatus.CREATED)


@router.get(
    "/workspaces/{workspace_id}/agents/{agent_name}",
    response=MembersAgent,
    operation_id="getMembersAgent",
    summary="Read an agent of a member",
)
def get_agent(request: ApiRequest, workspace_id: int, agent_name: str) -> HttpResponse:
    """Your own, or one that is shared."""
    workspace = workspace_where(request.user, Permission.MAKE_AGENTS, workspace_id)
    return _one(request, agent_in(request.user, workspace.pk, agent_name))


@router.patch(
    "/workspaces/{workspace_id}/agents/{agent_name}",
    response=MembersAgent,
    operation_id="changeAgent",
    summary="Change, share or archive an agent",
)
def change_agent(request: ApiRequest, workspace_id: int, agent_name: str, body: AgentChange) -> HttpResponse:
    """Its maker may, and owners and admins if it is shared. Sessions that have it keep their copy."""
    changes = body.model_dump(exclude_none=True)
    row = service.update(
        author=request.user,
        workspace_id=workspace_id,
        name=agent_name,
        given=_settings_with(agent_to_change(request.user, workspace_id, agent_name), changes),
        shared=body.shared,
        archived=body.archived,
        revision=body.revision,
    )
    return _one(request, row)


@router.post(
    "/workspaces/{workspace_id}/agents/{agent_name}/copy",
    response={201: MembersAgent},
    operation_id="copyAgent",
    summary="Copy an agent",
)
def copy_agent(request: ApiRequest, workspace_id: int, agent_name: str) -> HttpResponse:
    """Any that you may use, those of `GET /agents` too. Only you can use the copy until you share it."""
    return _one(
        request, service.copy(author=request.user, workspace_id=workspace_id, name=agent_name), HTTPStatus.CREATED
    )


def _settings(values: dict[str, Any]) -> AgentSettings:
    return AgentSettings(**{**values, "prompts": [opening(PromptConfig(**each)) for each in values["prompts"]]})


def _settings_with(row: AgentPreset, changes: dict[str, Any]) -> AgentSettings | None:
    """Return the settings of an agent with changes; None if there are none."""
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


def _told(seen: SeenAgent) -> dict[str, Any]:
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
    return json_response(request, _told(seen), status=status)
