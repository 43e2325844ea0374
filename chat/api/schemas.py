"""The schemas of sessions, messages and events, and the conversion of rows to them.

The API's description drops the suffix `Out` of class names: `SessionOut` is `Session` there (openapi.py). The
schemas describe responses. Responses are made from snapshots and are not validated again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from django.utils.translation import gettext as _
from ninja import Schema
from pydantic import Field, TypeAdapter

from agents.messages import Json
from agents.questions import Kind
from chat import ids
from chat.errors import Invalid
from chat.live.event_types import DESCRIBED_BY, Event
from chat.models import Session, SessionRole
from chat.queries import presets
from chat.queries.memory import uses_notes
from chat.queries.messages import session_snapshot
from chat.queries.session_list import Listed, ListedSession
from chat.snapshots import Activity, AgentStatus

SESSION_ID = "s_0123456789abcdef01234567"
MESSAGE_ID = "m_0123456789abcdef01234567"
TURN_ID = "t_0123456789abcdef01234567"
SCHEMAS = "#/components/schemas/"
EVENT = "Event"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

SessionStatus = Literal["active", "archived", "deleted"]
RoleName = Literal["viewer", "editor", "owner"]
Mode = Literal["chat", "agent", "run"]
Replies = Literal["all", "mentions"]
ICON = "The name of the agent's icon, as in `GET /agents`; empty if it has none"
MessageType = Literal["text", "reasoning", "tool_group", "error", "turn_start", "turn_done"]
MessageRole = Literal["user", "assistant", "system", ""]
MessageStatus = Literal["queued", "streaming", "pending", "running", "waiting", "complete", "interrupted", "failed"]
REPLIES = "Which messages the agent answers: `all`, or those with `@agent` or its name after an @ (`mentions`)"
MODE = "`chat`: the agent has no tools; `agent`: it has its tools; `run`: a program started it and no one watches"

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


class SessionOut(SessionState):
    """The present state of a session."""

    workspace: int
    config: SessionConfig
    role: RoleName = Field(description="Your role in the session")
    forked_from: str | None = Field(description="The session that this one was forked from, while it exists")
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


class PersonDecisionOut(Schema):
    """What one person has decided about a tool call."""

    user_id: int | None
    name: str
    at: datetime
    approved: bool
    edited: bool = Field(description="They changed the arguments: earlier approvals do not count any more")


class ApprovalOut(Schema):
    """What a tool call needs to run, and what has been decided about it."""

    needed: int = Field(description="How many different people have to approve")
    approvers: Literal["", "admin", "owner"] = Field(
        description="The least role in the workspace of those who count; empty: all who can answer"
    )
    decisions: list[PersonDecisionOut]


class MoneyOut(Schema):
    amount: str = Field(examples=["0.0042"], description="A decimal number")
    currency: str = Field(examples=["USD"])


class SubsessionOut(Schema):
    """The session in which another agent does what a call asks for."""

    id: str = Field(examples=[SESSION_ID])
    agent: str
    title: str = Field(description="The agent's name for people")
    tokens: int | None = Field(description="What it has used, with sessions below it; null while it works")
    costs: list[MoneyOut] = Field(description="By currency; empty if the price of a model is not configured")


class ToolFileOut(Schema):
    path: str = Field(description="In the workspace: read it with `/sessions/{session_id}/workspace/file`")
    media_type: str = Field(description="As the tool says")
    size: int = Field(description="In bytes")


class AskedOut(Schema):
    """A question of an MCP server to people, and what became of it."""

    question: dict[str, Any] = Field(description="`server`, `message`, and the `fields` of a form or a `url` to open")
    asked_at: datetime | None = None
    answer: dict[str, Any] | None = Field(None, description="`action`, and the `content` of a form; null: none")
    answered_by: str = ""
    answered_by_id: int | None = None
    answered_at: datetime | None = None
    withdrawn: str = Field("", description="Why no one can answer now: `expired`, `withdrawn`, `leaving`, `skipped`")


class MessageTool(Schema):
    """A tool call and its result."""

    call_id: str
    name: str
    arguments: Any
    result: str
    is_error: bool
    ended_at: datetime | None
    question: Literal["", Kind] = Field(
        "", description="What people are asked while the message is `waiting`; empty: nothing"
    )
    answer: Any = Field(None, description="What was answered")
    answered_by: str = Field("", description="The name of the user who answered")
    answered_by_id: int | None = None
    answered_at: datetime | None = None
    approval: ApprovalOut | None = Field(
        None, description="Of an approval that one person alone cannot give: what is needed, and each decision"
    )
    origin: str = Field("", description="Where foreign text in `result` comes from, such as a host")
    subsession: SubsessionOut | None = Field(None, description="Of a call that asks another agent: where that works")
    files: list[ToolFileOut] = Field([], description="Files that the tool has returned, in the session's workspace")
    asked: list[AskedOut] = Field(
        [], description="What an MCP server has asked people during the call; the last one waits for an `elicitation`"
    )


class TokenUsage(Schema):
    """Tokens and latency of one response of the model; on the response's last message."""

    input_tokens: int | None
    output_tokens: int | None
    total_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    first_token_latency_ms: int | None
    reasoning_tokens: int | None = Field(description="Counted in `output_tokens`")


class TurnError(Schema):
    """Why a turn failed, and what can help."""

    code: str
    remedy: Literal["retry", "model", "setting"] = Field(
        description="`retry`: the same request may succeed later; `model`: choose another model; `setting`: an "
        "administrator must change a setting"
    )


class AttachmentOut(Schema):
    """A file of a message. `kind` and `media_type` come from its bytes, not from its name."""

    id: str = Field(examples=["a_0123456789abcdef01234567"])
    name: str
    kind: Literal["image", "text", "pdf"]
    media_type: str
    size: int = Field(description="In bytes")
    width: int | None = Field(description="Of an image, in pixels")
    height: int | None
    pages: int | None = Field(description="Of a PDF file")


class CitedSource(Schema):
    """A page on which an answer is based."""

    number: int = Field(description="As in the text, where [1] cites the page with the number 1")
    title: str
    url: str


class AgentMentionOut(Schema):
    """A mention of an agent in a text: an @ and its name, its title, or "agent"."""

    agent: str
    start: int = Field(description="The place of the @, in code points")
    length: int


class MentionOut(Schema):
    """A mention of a person in a text: an @ and their name."""

    user_id: int
    start: int = Field(description="The place of the @, in code points")
    length: int


class ScheduleLabel(Schema):
    """A cron expression, and its IANA time zone."""

    cron: str
    zone: str


class MessageOut(Schema):
    """One message of a session: a text, reasoning, a tool call, an error, or the start or end of a turn."""

    id: str = Field(examples=[MESSAGE_ID])
    session_id: str = Field(examples=[SESSION_ID])
    sequence: int | None = Field(description="The place in the session, from 1; null while queued")
    revision: int = Field(description="The session's revision at the message's last change")
    type: MessageType
    role: MessageRole = Field(description="Empty for the start and end of a turn")
    status: MessageStatus
    text: str = Field(description="While `streaming`: the text so far")
    sender: str
    user_id: int | None
    model: str
    provider: str
    turn_id: str
    response_id: str
    include_in_context: bool = Field(description="Whether the model is sent the message")
    edited: bool
    edited_by: str = Field(description="Who made the last edit, if not the message's author; empty otherwise")
    edited_by_id: int | None
    suggested_by: str = Field(description="Who had suggested the last edit, if someone else accepted it")
    suggestions: int = Field(description="How many suggested edits are open")
    timestamp: datetime = Field(description="When the message began")
    duration_ms: int | None
    duration_seconds: float | None = Field(description="Of the turn; on `turn_done`")
    end_reason: Literal["", "stopped", "restarted"] = Field(description="Why an interrupted turn ended; on `turn_done`")
    stopped_by: str = Field(description="Who stopped the turn; on `turn_done`")
    stopped_by_id: int | None
    held: bool = Field(description="Queued, and put on hold by a stop until `send_now` sends it")
    for_agent: bool = Field(description="Whether the agent answers this message of a user: see the session's `replies`")
    attempt_count: int = Field(
        description="How many attempts there are at what follows this message; 0 if there is only one"
    )
    attempt_current: int = Field(description="Which of them follows it now, from 1; 0 if there is only one")
    usage: TokenUsage | None
    tool: MessageTool | None
    attachments: list[AttachmentOut]
    sources: list[CitedSource] = Field(
        description="Of a text: the pages that it cites, or may cite while it is `streaming`. Of a tool: its pages"
    )
    mentions: list[MentionOut] = Field(description="Where a user's message mentions people of the session")
    agent_mentions: list[AgentMentionOut] = Field(description="Where a user's message mentions agents of the session")
    words: Json | None = Field(
        description="For texts written by Parley: the template and values from which clients make translations"
    )
    error: TurnError | None = Field(description="Of an `error`; null otherwise")
    mode: Mode = Field(description="The session's mode when the message was written; `run` if a schedule has sent it")
    agent_id: str
    workflow_id: str = Field(description="The id of the schedule that has sent the message; empty otherwise")
    schedule: ScheduleLabel | None = Field(description="How often that schedule was due then; null otherwise")
    summarises: int | None = Field(
        description="Of a summary: how many messages it stands for. The model is not sent what is before it"
    )


class MessagePage(Schema):
    """Messages in order. `queued` messages come after all others."""

    messages: list[MessageOut]
    queued: list[MessageOut]
    more: bool = Field(description="Whether there are more messages in the direction of this page")


class EventRow(MessageOut):
    """The message that an event is about. `text` is left out where the event itself has it, or its length."""

    text: str = ""


class SyncedMessage(MessageOut):
    """A message in `changes`. Keep what you have of its text up to `offset`, and append `text`."""

    offset: int = Field(
        description="Greater than 0 only on sockets, for a `streaming` message of which you have a part"
    )


def session_out(session: Session, role: SessionRole) -> Json:
    """Return a session as JSON, in a constant number of queries."""
    config = presets.kept(session)
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
