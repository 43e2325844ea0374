"""Sessions: list, create, read, change, delete and restore them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from django.db.models import Q
from django.http import HttpResponse
from django.urls import reverse
from ninja import Body as BodyParam
from ninja import Query, Router, Schema
from pydantic import Field, model_validator

from agents.reasoning import MAX_BUDGET
from chat.access import session_for
from chat.api.auth import ApiRequest, workspace_of
from chat.api.commands import make_command
from chat.api.message_schemas import MODE, Mode
from chat.api.parsing import Body, Instant, Name
from chat.api.responses import if_match_revisions, json_response, no_content
from chat.api.schemas import (
    COMPACT_AT,
    KNOWLEDGE,
    MEMORY,
    REPLIES,
    SessionOut,
    SessionPage,
    cursor_of,
    parse_cursor,
    session_out,
    summary_out,
)
from chat.command_frames import MalformedCommand
from chat.commands import (
    MAX_FILES,
    MAX_ROUNDS,
    MAX_SYSTEM_PROMPT_LENGTH,
    MAX_TOOLS,
    EffortName,
    FileId,
    SessionCommand,
    ToolName,
)
from chat.dispatch import amend
from chat.models import Session
from chat.queries.session_list import ListFilter, listed_before
from chat.services.idempotency import create_once
from chat.services.sessions.actions import SessionAction, apply_action
from chat.services.sessions.lifecycle import begin_session

router = Router(tags=["Sessions"])
STATUS_ACTIONS = {"archived": SessionAction.ARCHIVE, "active": SessionAction.RESTORE}
PIN_ACTIONS = {True: SessionAction.PIN, False: SessionAction.UNPIN}


class SessionQuery(Schema):
    workspace: int | None = Field(None, description="The id of a workspace. Return only sessions of this workspace.")
    archived: bool = Field(False, description="Return archived sessions instead of active ones.")
    deleted: bool = Field(
        False, description="Return your own deleted sessions instead of active ones. `undeleteSession` restores them."
    )
    q: str = Field(
        "",
        max_length=1000,
        description="Words that must all occur in the title, in the owner's name, or in one message. Only the first 8 "
        "words count. By their messages, only the 500 sessions with the newest matches are found.",
    )
    agent: Name | None = Field(None, description="The `name` of an agent. Return only sessions with this agent.")
    updated_since: Instant | None = Field(
        None, description="A time with an offset. Return only sessions that were active at this time or later."
    )
    limit: int = Field(50, ge=1, le=100, description="The maximum number of sessions on a page.")
    cursor: str | None = Field(
        None, max_length=60, description="The `next` of the previous page. Leave it out for the first page."
    )

    @model_validator(mode="after")
    def _one_list(self) -> SessionQuery:
        if self.archived and self.deleted:
            raise ValueError("Ask for archived or deleted sessions, not for both.")
        return self


class ConfigChanges(Body):
    """Changes of a session's configuration. Fields that are left out or null keep their values."""

    tools: list[ToolName] | None = Field(
        None,
        max_length=MAX_TOOLS,
        description="The names of the tools that the agent can call. `SERVER__*` means all tools of the MCP server "
        "`SERVER`. An empty list means no tools.",
    )
    max_rounds: int | None = Field(
        None,
        ge=1,
        le=MAX_ROUNDS,
        description="The maximum number of rounds of tool calls in one turn. The server can have a lower limit than "
        "this schema.",
    )
    reasoning_effort: EffortName | None = Field(
        None,
        examples=["high"],
        description="One of the model's `reasoning_efforts`, as `listModels` returns them. An empty string lets the "
        "model decide.",
    )
    thinking_budget: int | None = Field(
        None,
        ge=0,
        le=MAX_BUDGET,
        description="The maximum number of tokens that the model may use for thinking. 0 lets the model decide.",
    )
    compact_at: int | None = Field(None, ge=0, le=100, description=COMPACT_AT)
    memory: bool | None = Field(None, description=MEMORY)
    knowledge: list[FileId] | None = Field(None, max_length=MAX_FILES, description=KNOWLEDGE)


RepliesChoice = Literal["all", "mentions", "auto"]
BY_PEOPLE = "`auto`: `all` while only one user can write in the session, otherwise `mentions`."


class NewSession(Body):
    """A session to create. If a request with the same `key` has created a session before, that session is returned."""

    title: str = Field(
        "", max_length=200, description="The title. If it is empty, a title is generated from the first message."
    )
    text: str = Field(
        "",
        examples=["Plan a project with me, step by step"],
        description="The first message, which the agent answers. If it is empty, no message is sent.",
    )
    agent: Name = Field(
        "",
        description="The `name` of an agent. If it is empty, the session uses the first agent that `listAgents` "
        "returns.",
    )
    provider: Name = Field(
        "",
        description="The name of the provider of the model, as `listModels` returns it. If it is empty, the provider "
        "is found by the model.",
    )
    model: str = Field(
        "",
        max_length=200,
        description="The name of a model, as `listModels` returns it. If it is empty, the session uses the agent's "
        "model.",
    )
    system_prompt: str | None = Field(
        None,
        max_length=MAX_SYSTEM_PROMPT_LENGTH,
        description="The session's system prompt. If null, the session uses that of the agent.",
    )
    mode: Mode = Field("agent", description=MODE)
    replies: RepliesChoice = Field("all", description=f"{REPLIES} {BY_PEOPLE}")
    config: ConfigChanges | None = Field(
        None, description="The configuration. Fields that are left out or null have the values of the agent."
    )
    workspace: int | None = Field(
        None,
        description="The id of the workspace in which to create the session. If null, it is your current workspace.",
    )
    key: str | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="A text that identifies the request, such as a random UUID. If you repeat the request with the "
        "same key, it is carried out only once.",
    )


class SessionChanges(Body):
    """Changes of a session. All of them are made, or none. Fields that are left out or null keep their values."""

    title: str | None = Field(None, examples=["Release plan"], description="The new title. At most 200 characters.")
    agent: Name | None = Field(
        None,
        description="The `name` of an agent. The session takes its model and configuration, and its system prompt "
        "unless a user has written another one.",
    )
    provider: Name | None = Field(
        None, description="The name of the provider of the model. Required together with `model`."
    )
    model: str | None = Field(
        None,
        max_length=200,
        description="The name of a model of the provider, as `listModels` returns it. Required together with "
        "`provider`.",
    )
    system_prompt: str | None = Field(None, max_length=MAX_SYSTEM_PROMPT_LENGTH, description="The new system prompt.")
    seen_system_prompt: str | None = Field(
        None,
        max_length=MAX_SYSTEM_PROMPT_LENGTH,
        description="The system prompt that you have read. If it has changed since, the request is refused as `stale`.",
    )
    mode: Mode | None = Field(None, description=MODE)
    replies: RepliesChoice | None = Field(None, description=f"{REPLIES} {BY_PEOPLE}")
    config: ConfigChanges | None = Field(None, description="Changes of the configuration.")
    status: Literal["active", "archived"] | None = Field(
        None,
        description="`archived` closes the session to changes, and `active` opens it again. Only the owner of the "
        "session may change the status.",
    )
    pinned: bool | None = Field(None, description="Whether the session is pinned in your own list.")


@router.get("/sessions", response=SessionPage, operation_id="listSessions", summary="List sessions")
def list_sessions(request: ApiRequest, query: Query[SessionQuery]) -> HttpResponse:
    """List the sessions that you own and those that are shared with you, beginning with the last active one."""
    after = parse_cursor(query.cursor) if query.cursor else None
    workspace = workspace_of(request, query.workspace)
    only = ListFilter(
        archived=query.archived,
        deleted=query.deleted,
        words=query.q,
        agent=query.agent,
        updated_since=query.updated_since,
        within=Q(workspace=workspace) if workspace else None,
    )
    page = listed_before(request.user, after, count=query.limit, only=only)
    following = cursor_of(page.rows[-1].listed) if page.more else None
    return json_response(request, {"sessions": [summary_out(row) for row in page.rows], "next": following})


@router.post(
    "/sessions", response={201: SessionOut, 200: SessionOut}, operation_id="createSession", summary="Create a session"
)
def create_session(request: ApiRequest, body: BodyParam[NewSession | None] = None) -> HttpResponse:
    """Create a session. If `text` is not empty, it is sent as the first message and the agent answers it.

    The status is 200 if a request with the same `key` has created the session before.
    """
    body = body or NewSession.model_validate({})
    chosen = body.model_dump(exclude={"key", "workspace", "mode", "config"})
    config: Any = {"mode": body.mode} | (body.config.model_dump() if body.config else {})

    def make(session_id: str, key_digest: str | None) -> Session:
        workspace = workspace_of(request, body.workspace)
        return begin_session(
            owner=request.user,
            workspace=workspace,
            session_id=session_id,
            key_digest=key_digest,
            configuration=config,
            **chosen,
        )

    fields = body.model_dump(exclude={"key"})
    session, repeated = create_once(user=request.user, purpose="session", key=body.key, request=fields, make=make)
    location = reverse("api:get_session", args=[session.pk])
    return _current(request, session.pk, status=200 if repeated else 201, location=location)


@router.get("/sessions/{session_id}", response=SessionOut, operation_id="getSession", summary="Retrieve a session")
def get_session(request: ApiRequest, session_id: str) -> HttpResponse:
    """Return a session with its settings, its token counts and the state of its agent."""
    return _current(request, session_id)


@router.patch("/sessions/{session_id}", response=SessionOut, operation_id="changeSession", summary="Change a session")
def change_session(request: ApiRequest, session_id: str, body: SessionChanges) -> HttpResponse:
    """Change a session. Editors may change everything except `status`. All users with access may change `pinned`.

    Changes of the agent, model, mode, configuration and system prompt take effect with the next response.
    """
    amend(
        user=request.user,
        session_id=session_id,
        commands=list(_commands(body)),
        actions=list(_actions(body)),
        seen=if_match_revisions(request),
    )
    return _current(request, session_id)


@router.delete("/sessions/{session_id}", response={204: None}, operation_id="deleteSession", summary="Delete a session")
def delete_session(request: ApiRequest, session_id: str) -> HttpResponse:
    """Delete a session. The running turn is stopped, and all users lose access. `undeleteSession` restores the session.

    Only the owner of the session may delete it.
    """
    amend(user=request.user, session_id=session_id, actions=[SessionAction.DELETE], seen=if_match_revisions(request))
    return no_content()


@router.post(
    "/sessions/{session_id}/undelete",
    response=SessionOut,
    operation_id="undeleteSession",
    summary="Restore a deleted session",
)
def undelete_session(request: ApiRequest, session_id: str) -> HttpResponse:
    """Restore a deleted session. All users who had access get it back. Queued messages stay until a user sends them.

    Only the owner of the session may restore it.
    """
    apply_action(user=request.user, action=SessionAction.UNDELETE, session_ids=[session_id])
    return _current(request, session_id)


@router.post(
    "/sessions/{session_id}/leave", response={204: None}, operation_id="leaveSession", summary="Leave a session"
)
def leave_session(request: ApiRequest, session_id: str) -> HttpResponse:
    """Give up your access to a session of another user."""
    apply_action(user=request.user, action=SessionAction.LEAVE, session_ids=[session_id])
    return no_content()


def _current(request: ApiRequest, session_id: str, *, status: int = 200, location: str = "") -> HttpResponse:
    session, role = session_for(request.user, session_id)
    return json_response(
        request, session_out(session, role), revision=session.revision, status=status, location=location
    )


def _commands(body: SessionChanges) -> Iterator[SessionCommand]:
    """Yield the commands that make the changes. Raise MalformedCommand.

    The agent comes first, because it sets the model, prompt and configuration that the other commands change.
    """
    if body.agent is not None:
        yield make_command("set_agent", agent=body.agent)
    if (body.provider is None) != (body.model is None):
        raise MalformedCommand("model: Name the provider and the model together.")
    if body.provider is not None:
        yield make_command("set_model", provider=body.provider, model=body.model)
    config = body.config.model_dump() if body.config else {}
    if any(value is not None for value in (body.mode, body.replies, *config.values())):
        yield make_command("configure", mode=body.mode, replies=body.replies, **config)
    if body.system_prompt is not None:
        yield make_command("set_system_prompt", system_prompt=body.system_prompt, seen=body.seen_system_prompt)
    if body.title is not None:
        yield make_command("rename", title=body.title)


def _actions(body: SessionChanges) -> Iterator[SessionAction]:
    if body.status is not None:
        yield STATUS_ACTIONS[body.status]
    if body.pinned is not None:
        yield PIN_ACTIONS[body.pinned]
