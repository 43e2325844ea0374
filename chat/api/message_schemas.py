"""The schemas of messages. Like those of sessions, they describe responses, which are not validated again."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from ninja import Schema
from pydantic import Field

from agents.messages import Json
from agents.questions import Kind

SESSION_ID = "s_0123456789abcdef01234567"
MESSAGE_ID = "m_0123456789abcdef01234567"
TURN_ID = "t_0123456789abcdef01234567"

Mode = Literal["chat", "agent", "run"]
MessageType = Literal["text", "reasoning", "tool_group", "error", "turn_start", "turn_done"]
MessageRole = Literal["user", "assistant", "system", ""]
MessageStatus = Literal["queued", "streaming", "pending", "running", "waiting", "complete", "interrupted", "failed"]
MODE = "`chat`: the agent has no tools; `agent`: it has its tools; `run`: a program started it and no one watches"


class PersonDecisionOut(Schema):
    """What one person has decided about a tool call."""

    user_id: int | None
    name: str
    at: datetime
    approved: bool
    edited: bool = Field(description="They changed the arguments: earlier approvals do not count any more")
    lapsed: bool = Field(False, description="They may not approve the call any more: theirs does not count")


class ApprovalOut(Schema):
    """What a tool call needs to run, and what has been decided about it."""

    needed: int = Field(description="How many different people have to approve")
    approvers: Literal["", "admin", "owner"] = Field(
        description="The least role in the workspace of those who count; empty: all who can answer"
    )
    decisions: list[PersonDecisionOut]
    agreed: list[int] = Field([], description="The ids of those who have approved the arguments as they are")


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
    waits: Literal["", "approval", "answer"] = Field("", description="What it waits for from people; empty: nothing")


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
    made_at: datetime | None = Field(
        description="Of a summary: when it was made. Its `timestamp` is that of the message before it"
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
