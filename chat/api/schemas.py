"""The schemas of sessions and events, and the conversion of rows to them.

The OpenAPI description leaves out the suffix `Out` of class names: `SessionOut` is called `Session` there (openapi.py).
The schemas only describe responses, which are built from snapshots and are not validated against them.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from django.utils.translation import gettext as _
from ninja import Schema
from pydantic import Field, TypeAdapter

from agents.messages import Json
from chat import ids
from chat.api.message_schemas import EXAMPLE_SESSION_ID, MODE, EventRow, MessageOut, Mode, SyncedMessage, TokenUsage
from chat.errors import Invalid
from chat.live.event_types import DESCRIBED_BY, Event
from chat.models import Session, SessionRole
from chat.queries import presets
from chat.queries.forked_files import forked_files
from chat.queries.memory import uses_notes
from chat.queries.messages import session_snapshot
from chat.queries.session_list import Listed, ListedSession
from chat.session_snapshot import Activity, AgentStatus

SCHEMAS = "#/components/schemas/"
EVENT = "Event"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

SessionStatus = Literal["active", "archived", "deleted"]
RoleName = Literal["viewer", "editor", "owner"]
Replies = Literal["all", "mentions"]
ICON = "The name of the agent's icon, as `listAgents` returns it. Empty if the agent has none."
REPLIES = (
    "The messages that the agent answers. `all`: every message. `mentions`: messages that contain `@agent`, or the "
    "agent's name or title after an `@`."
)

COMPACT_AT = (
    "The percentage of the context window at which earlier messages are summarized automatically. From 30 to 95, or 0 "
    "for never."
)
MEMORY = "Whether the agent gets the notes about the owner of the session and those of the workspace."
KNOWLEDGE = (
    'The files of the workspace that the agent can search and read: a list of their ids, or `["*"]` for all files. '
    "The value can contain names or patterns of names if it was copied from a configured agent."
)


class SessionConfig(Schema):
    """The session's own copy of its agent's settings. Changes take effect with the next response."""

    tools: list[str] = Field(
        description="The names of the tools that the agent can call. `SERVER__*` means all tools of the MCP server "
        "`SERVER`."
    )
    max_rounds: int = Field(description="The maximum number of rounds of tool calls in one turn.")
    prompts: list[str] = Field(description="Suggestions for the first message.")
    reasoning_effort: str = Field(examples=["high"], description="The reasoning level. Empty if the model decides.")
    thinking_budget: int | None = Field(
        description="The maximum number of tokens that the model may use for thinking. Null if the model decides."
    )
    compact_at: int = Field(description=COMPACT_AT)
    memory: bool = Field(description=MEMORY)
    knowledge: list[str] = Field(description=KNOWLEDGE)


class SessionAgent(Schema):
    """An agent of a session. A message mentions it by an `@` and its `name` or `title`."""

    name: str = Field(description="The name that identifies the agent.")
    title: str = Field(description="The display name of the agent.")
    provider: str = Field(description="The name of the provider of the agent's model.")
    model: str = Field(description="The name of the agent's model.")
    icon: str = Field(description=ICON)


class SessionState(Schema):
    """The current state of a session, as events contain it."""

    id: str = Field(examples=[EXAMPLE_SESSION_ID], description="The id of the session.")
    title: str = Field(description="The title. Empty if the session has none yet.")
    status: SessionStatus = Field(
        description="`active`, `archived` (closed to changes until its owner restores it), or `deleted`."
    )
    mode: Mode = Field(description=MODE)
    replies: Replies = Field(description=REPLIES)
    agents: list[SessionAgent] = Field(
        description="All agents of the session, beginning with its own agent. Empty if there is only one."
    )
    replies_auto: bool = Field(
        description="Whether Parley sets `replies` from the number of users who can write in the session: `all` for "
        "one user, otherwise `mentions`."
    )
    agent: str = Field(description="The `name` of the session's own agent.")
    agent_title: str = Field(
        description="The display name of the session's own agent. Empty if the server offers only one agent."
    )
    agent_icon: str = Field(description=ICON)
    provider: str = Field(description="The name of the provider of the agent's model.")
    model: str = Field(description="The name of the agent's model.")
    reasoning_effort: str = Field(
        description="The reasoning level from `config`. Empty if it is not set, or if the model does not offer it."
    )
    thinking_budget: int | None = Field(
        description="The thinking budget from `config`, in tokens. Null if it is not set, or if the model does not "
        "offer one."
    )
    system_prompt: str = Field(description="The system prompt, which the agent gets with each request.")
    owner_id: int = Field(description="The id of the user who owns the session.")
    revision: int = Field(
        description="The number of durable changes of the session and its messages so far. Each change raises it by "
        "one."
    )
    context_used: int | None = Field(
        description="The number of input tokens of the last request to the model, or an estimate. Null if unknown."
    )
    context_window: int | None = Field(
        description="The maximum number of tokens of a request to the model. Null if unknown."
    )
    context_percent: float | None = Field(
        description="`context_used` as a percentage of `context_window`, with one decimal place. Null if one of them "
        "is unknown."
    )
    session_total_tokens: int = Field(
        description="The number of input and output tokens that the session has used so far."
    )
    agent_status: AgentStatus = Field(
        description="The current activity of the agent: `idle`, `thinking`, `tool_calling` (it runs a tool), or "
        "`waiting` (it waits for a user)."
    )
    tool_name: str = Field(description="The name of the tool that is running. Empty if none is running.")
    activity: Activity = Field(
        description="`compacting` while the agent summarizes earlier messages, otherwise empty. `retrying` occurs "
        "only in `agent_status` events."
    )
    archived_by: str = Field(
        description="The name of the user who archived the session. Empty if it is not archived, or if the user is "
        "unknown."
    )
    archived_by_id: int | None = Field(
        description="The id of the user who archived the session. Null if it is not archived, or if the user is "
        "unknown."
    )


class ForkedFiles(Schema):
    """The result of copying the files in the original session's folder into a fork."""

    at: datetime = Field(description="The time of the copy.")
    left_out: int = Field(
        description="The number of entries that were not copied, because they are not readable or are not regular "
        "files."
    )
    reason: Literal["size", "disk", "limit", "failed", "access"] | None = Field(
        description="The reason why no files were copied. `size`: there are too many files, or they are too large. "
        "`disk`: the disk is too full. `limit`: your recent forks have copied too much (`fork_megabytes`). `access`: "
        "you have no access to the files. `failed`: the files could not be read or written. Null if the files were "
        "copied."
    )


class SessionOut(SessionState):
    """The current state of a session, with its configuration and your role in it."""

    workspace: int = Field(description="The id of the workspace of the session.")
    config: SessionConfig
    role: RoleName = Field(
        description="Your role in the session. A `viewer` can read it, and an `editor` can also write in it."
    )
    forked_from: str | None = Field(
        description="The id of the session that this session was forked from. Null if it is not a fork, or if the "
        "original no longer exists."
    )
    forked_files: ForkedFiles | None = Field(
        description="The result of copying the files of the original session. Null if this is not a fork, or if there "
        "were no files."
    )
    works_for: str | None = Field(
        description="The id of the session whose agent gave this session its task. Null if there is none, or if it no "
        "longer exists."
    )
    created_at: datetime = Field(description="The time at which the session was created.")
    updated_at: datetime = Field(description="The time of the last activity in the session.")


class SessionSummary(Schema):
    """A session in a list."""

    id: str = Field(examples=[EXAMPLE_SESSION_ID], description="The id of the session.")
    workspace: int = Field(description="The id of the workspace of the session.")
    title: str = Field(description="The title. Empty if the session has none yet.")
    owner_id: int = Field(description="The id of the user who owns the session.")
    owner: str = Field(description="The display name of the owner.")
    role: RoleName = Field(
        description="Your role in the session. A `viewer` can read it, and an `editor` can also write in it."
    )
    agent: str = Field(description="The `name` of the session's own agent.")
    provider: str = Field(description="The name of the provider of the agent's model.")
    model: str = Field(description="The name of the agent's model.")
    mode: Mode = Field(description=MODE)
    archived: bool = Field(description="Whether the session is archived.")
    deleted: bool = Field(description="Whether the session is deleted. It can be restored with `undeleteSession`.")
    pinned: bool = Field(description="Whether you have pinned the session in your list.")
    unread: bool = Field(description="Whether the session has messages from others that you have not read.")
    mentioned: bool = Field(description="Whether a message that you have not read mentions you.")
    working: bool = Field(description="Whether an agent is working in the session.")
    waiting: bool = Field(description="Whether the agent waits for an answer that you may give.")
    updated_at: datetime = Field(description="The time of the last activity in the session.")


class SessionPage(Schema):
    """A page of sessions, beginning with the last active one."""

    sessions: list[SessionSummary] = Field(description="The sessions of the page.")
    next: str | None = Field(description="The `cursor` of the next page. Null on the last page.")


def session_out(session: Session, role: SessionRole) -> Json:
    """Return a session as JSON. The number of database queries is constant."""
    config, files = presets.agent_copy(session), forked_files(session)
    return {
        **session_snapshot(session).to_json(),
        "workspace": session.workspace_id,
        "role": role.value,
        "config": {
            "tools": list(config.tools),
            "max_rounds": config.max_rounds,
            "prompts": list(config.prompts),
            **config.reasoning.to_config(),
            "compact_at": presets.compact_at(session),
            "memory": uses_notes(session),
            "knowledge": list(config.knowledge),
        },
        "forked_from": session.parent_session_id,
        "forked_files": {**asdict(files), "at": files.at.isoformat()} if files else None,
        "works_for": session.caller_session_id,
        "created_at": session.created_at.isoformat(),
        "updated_at": session.updated_at.isoformat(),
    }


def summary_out(entry: ListedSession) -> Json:
    """Return a session of a list as JSON."""
    row, session = entry.listed, entry.session
    return {
        "id": row.id,
        "workspace": row.workspace,
        "title": row.title,
        "owner_id": session.owner_id,
        "owner": session.owner.sender,
        "role": entry.role,
        "agent": session.agent,
        "provider": session.provider,
        "model": session.model,
        "mode": session.mode,
        "archived": row.archived,
        "deleted": session.status == Session.Status.DELETED,
        "pinned": row.pinned,
        "unread": row.unread,
        "mentioned": row.mentioned,
        "working": row.working,
        "waiting": row.waiting,
        "updated_at": row.updated_at.isoformat(),
    }


def cursor_of(row: Listed) -> str:
    """Return the cursor with which the page after this row begins: its time in microseconds and its id."""
    return f"{(row.updated_at - EPOCH) // MICROSECOND}.{row.id}"


def parse_cursor(cursor: str) -> tuple[datetime, str]:
    """Return the time and session id of a cursor. Raise Invalid."""
    count, _dot, session_id = cursor.partition(".")
    if not (count.isascii() and count.isdigit() and len(count) <= 16 and ids.may_be_one(session_id)):
        raise Invalid(_("Invalid cursor. Use `next` of the previous page."))
    return EPOCH + int(count) * MICROSECOND, session_id


def event_schemas() -> Json:
    """Return schemas by name: all events, their union `Event`, and the objects in them."""
    event = TypeAdapter[Any](Event).json_schema(ref_template=SCHEMAS + "{model}")
    schemas: Json = event.pop("$defs")
    for model in (MessageOut, EventRow, SyncedMessage, SessionState, TokenUsage):
        schema = model.model_json_schema(ref_template=SCHEMAS + "{model}")
        schemas |= schema.pop("$defs", {}) | {model.__name__: schema}
    del schemas["EventRow"]["properties"]["text"]["default"]
    schemas[EVENT] = {"description": "An event of a session. Its `type` determines the schema.", **event}
    _resolve(schemas)
    return schemas


def _resolve(value: Any) -> None:
    """Replace the names of schemas by references to them."""
    if isinstance(value, dict):
        if (name := value.pop(DESCRIBED_BY, None)) is not None:
            value.clear()
            value["$ref"] = SCHEMAS + name
        for each in value.values():
            _resolve(each)
    elif isinstance(value, list):
        for each in value:
            _resolve(each)
