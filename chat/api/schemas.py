"""The schemas of sessions and events, and the conversion of rows to them.

The API's description drops the suffix `Out` of class names: `SessionOut` is `Session` there (openapi.py). The
schemas describe responses. Responses are made from snapshots and are not validated again.
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
from chat.api.message_schemas import MODE, SESSION_ID, EventRow, MessageOut, Mode, SyncedMessage, TokenUsage
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
ICON = "The name of the agent's icon, as in `GET /agents`; empty if it has none"
REPLIES = "Which messages the agent answers: `all`, or those with `@agent` or its name after an @ (`mentions`)"

COMPACT_AT = "The percentage of the context window at which earlier messages are summarized, from 30 to 95; 0: never"
MEMORY = "Whether the agent gets the notes that people have accepted in earlier sessions"
KNOWLEDGE = "The files of the workspace that the agent can search and read: ids, or `*` for all. Agents may name files"


class SessionConfig(Schema):
    """What the session keeps of its agent. Changes take effect with the next response."""

    tools: list[str]
    max_rounds: int = Field(description="Tool rounds in one turn")
    prompts: list[str] = Field(description="Suggestions for a first message")
    reasoning_effort: str = Field(examples=["high"], description="Empty: the model decides")
    thinking_budget: int | None = Field(description="In tokens; null: the model decides")
    compact_at: int = Field(description=COMPACT_AT)
    memory: bool = Field(description=MEMORY)
    knowledge: list[str] = Field(description=KNOWLEDGE)


class SessionAgent(Schema):
    """An agent of a session: `name` addresses it after an @."""

    name: str
    title: str
    provider: str
    model: str
    icon: str = Field(description=ICON)


class SessionState(Schema):
    """The present state of a session, as events send it."""

    id: str = Field(examples=[SESSION_ID])
    title: str
    status: SessionStatus
    mode: Mode = Field(description=MODE)
    replies: Replies = Field(description=REPLIES)
    agents: list[SessionAgent] = Field(description="All agents, the session's own first; empty if there is one only")
    replies_auto: bool = Field(
        description="Whether `replies` follows the number of people who can write: `all` for one, else `mentions`"
    )
    agent: str
    agent_title: str = Field(description="The agent's display name; empty where only one agent is configured")
    agent_icon: str = Field(description=ICON)
    provider: str
    model: str
    reasoning_effort: str = Field(description="That of `config`, if the model takes it; empty otherwise")
    thinking_budget: int | None = Field(description="That of `config`, if the model takes one; null otherwise")
    system_prompt: str
    owner_id: int
    revision: int = Field(description="Counts the changes of the session and its messages")
    context_used: int | None
    context_window: int | None
    context_percent: float | None
    session_total_tokens: int
    agent_status: AgentStatus
    tool_name: str = Field(description="The tool that is running; empty otherwise")
    activity: Activity = Field(
        description="`compacting` while the agent summarizes earlier messages; else empty. `retrying` is in events only"
    )
    archived_by: str = Field(description="Who has archived it; empty if it is not archived, or that is not known")
    archived_by_id: int | None


class ForkedFiles(Schema):
    """What a fork got of the files in the workspace of its original, when it was made."""

    at: datetime
    left_out: int = Field(description="Entries that could not be copied: not readable, or no files")
    reason: Literal["size", "disk", "limit", "failed", "access"] | None = Field(
        description="Why no files were copied; null if they were: `size`, too many or too large; `disk`, no room; "
        "`limit`, your recent forks have copied too much (`fork_megabytes`); `access`, you cannot see them"
    )


class SessionOut(SessionState):
    """The present state of a session."""

    workspace: int
    config: SessionConfig
    role: RoleName = Field(description="Your role in the session")
    forked_from: str | None = Field(description="The session that this one was forked from, while it exists")
    forked_files: ForkedFiles | None = Field(description="Null unless the original had files")
    works_for: str | None = Field(description="The session whose agent asked the agent of this one, while it exists")
    created_at: datetime
    updated_at: datetime


class SessionSummary(Schema):
    """A session in a list."""

    id: str = Field(examples=[SESSION_ID])
    workspace: int
    title: str
    owner_id: int
    owner: str = Field(description="The owner's display name")
    role: RoleName = Field(description="Your role in the session")
    agent: str
    provider: str
    model: str
    mode: Mode = Field(description=MODE)
    archived: bool
    deleted: bool
    pinned: bool
    unread: bool = Field(description="Whether others have written messages that you have not read")
    mentioned: bool = Field(description="Whether a message that you have not read mentions you")
    working: bool = Field(description="Whether the agent is working")
    waiting: bool = Field(description="Whether the agent waits for an answer that you may give")
    updated_at: datetime


class SessionPage(Schema):
    """Sessions in order of their last activity, newest first."""

    sessions: list[SessionSummary]
    next: str | None = Field(description="The `cursor` of the next page; null on the last one")


def session_out(session: Session, role: SessionRole) -> Json:
    """Return a session as JSON, in a constant number of queries."""
    config, files = presets.kept(session), forked_files(session)
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
    """Return a session in a list as JSON."""
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
    """Return the cursor of a row of the list."""
    return f"{(row.updated_at - EPOCH) // MICROSECOND}.{row.id}"


def parse_cursor(cursor: str) -> tuple[datetime, str]:
    """Return the time and session id of a cursor. Raises Invalid."""
    count, _dot, session_id = cursor.partition(".")
    if not (count.isascii() and count.isdigit() and len(count) <= 16 and ids.may_be_one(session_id)):
        raise Invalid(_("Invalid cursor. Use `next` of the previous page."))
    return EPOCH + int(count) * MICROSECOND, session_id


def event_schemas() -> Json:
    """Return the schemas of all events by name, of `Event`, their union, and of the objects in them."""
    event = TypeAdapter[Any](Event).json_schema(ref_template=SCHEMAS + "{model}")
    schemas: Json = event.pop("$defs")
    for model in (MessageOut, EventRow, SyncedMessage, SessionState, TokenUsage):
        schema = model.model_json_schema(ref_template=SCHEMAS + "{model}")
        schemas |= schema.pop("$defs", {}) | {model.__name__: schema}
    del schemas["EventRow"]["properties"]["text"]["default"]
    schemas[EVENT] = {"description": "An event of a session; `type` says which.", **event}
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
