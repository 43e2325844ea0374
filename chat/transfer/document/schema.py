"""Parley's own form of a conversation, as a validated document."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from chat.models import (
    EndReason,
    MessageRevision,
    MessageRole,
    MessageStatus,
    MessageType,
    QuestionKind,
    Session,
    SessionRevision,
)
from chat.transfer.document.values import (
    Before,
    Count,
    Id,
    Json,
    JsonObject,
    Name,
    ProviderData,
    Seconds,
    Short,
    Text,
    Time,
    among,
)
from chat.transfer.exporting.as_json import FORMAT

MAX_MESSAGES = 50_000
MAX_CHANGES = 100_000
MAX_FILES = 10
MAX_ASKED = 1000
MAX_PROMPT_CHARS = 200_000

Column = Literal[
    "system_prompt",
    "title",
    "agent",
    "config",
    "mode",
    "replies",
    "replies_auto",
    "provider",
    "model",
    "context_window",
]
Mode = Annotated[str, among(Session.Mode.values)]


class Part(BaseModel):
    """One object of the document. Unknown members are dropped."""

    model_config = ConfigDict(strict=True, extra="ignore")


class AttachmentPart(Part):
    """A file. `data` is its bytes in base64, or None if they are missing.

    If an archive contains the file, `entry` is the name of its entry.
    """

    id: Id = ""
    name: Text = "file"
    data: str | None = None
    entry: str = ""


class RevisionPart(Part):
    """A message before the user `by` changed it."""

    kind: Annotated[str, among(MessageRevision.Kind.values)]
    by: Name = ""
    at: Time
    before: Before


class ChangePart(Part):
    """The changed columns of the session, as they were before the user `by` changed them."""

    kind: Annotated[str, among(SessionRevision.Kind.values)]
    revision: Count
    by: Name = ""
    at: Time
    before: dict[Column, Text | Count | bool | JsonObject | None]


class RequestPart(Part):
    """A request to the model. `rows` are pairs of a message id and the message's revision at that time."""

    response_id: Annotated[Id, Field(min_length=1)]
    revision: Count = 0
    agent: Short = ""
    provider: Short = ""
    model: Name = ""
    tools: Annotated[list[Name], Field(max_length=1000)] = []
    shared: Annotated[int, Field(ge=0, le=MAX_MESSAGES)] = 0
    rows: Annotated[list[tuple[Id, Count]], Field(max_length=MAX_MESSAGES)] = []
    created_at: Time

    @field_validator("rows", mode="before")
    @classmethod
    def _pairs(cls, rows: Any) -> Any:
        return [tuple(row) if isinstance(row, list) else row for row in rows] if isinstance(rows, list) else rows


class AskedPart(Part):
    """A question of a running call, and its answer. The members have the names that `chat.runs.elicitations` uses."""

    question: JsonObject
    asked_at: Time | None = None
    answer: JsonObject | None = None
    answered_by: Name = ""
    answered_at: Time | None = None
    withdrawn: Short = ""

    def record(self) -> dict[str, Any]:
        """Return the record in the form that a row stores."""
        values = self.model_dump(exclude_defaults=True)
        return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()}


class MessagePart(Part):
    """One message. Its members have the names of its columns."""

    id: Id = ""
    sequence: Count | None = None
    revision: Count = 0
    type: Annotated[str, among(MessageType.values)] = MessageType.TEXT.value
    role: Annotated[str, among(["", *MessageRole.values])] = ""
    status: Annotated[str, among(MessageStatus.values)] = MessageStatus.COMPLETE.value
    text: Text = ""
    sender: Name = ""
    model: Name = ""
    provider: Short = ""
    run_id: Id = ""
    response_id: Id = ""
    mode: Mode = Session.Mode.AGENT.value
    workflow_id: Short = ""
    agent_id: Short = ""
    include_in_context: bool = True
    tool_call_id: Name = ""
    tool_name: Name = ""
    arguments: Json = None
    result: Text = ""
    is_error: bool = False
    question: Annotated[str, among(["", *QuestionKind.values])] = ""
    answer: Json = None
    origin: Name = ""
    sources: Json = None
    answered_by_name: Name = ""
    answered_at: Time | None = None
    asked: Annotated[list[AskedPart], Field(max_length=MAX_ASKED)] = []
    timestamp: Time | None = None
    ended_at: Time | None = None
    duration_ms: Count | None = None
    duration_seconds: Seconds | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    total_tokens: Count | None = None
    cache_read_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    reasoning_tokens: Count | None = None
    first_token_latency_ms: Count | None = None
    provider_data: ProviderData | None = None
    edited_at: Time | None = None
    edited_by_name: Name = ""
    suggested_by_name: Name = ""
    end_reason: Annotated[str, among(["", *EndReason.values])] = ""
    stopped_by_name: Name = ""
    summarises: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    attempt: Id = ""
    attempt_place: Count | None = None
    removed_at: Time | None = None
    created_at: Time | None = None
    attachments: Annotated[list[AttachmentPart], Field(max_length=MAX_FILES)] = []
    revisions: Annotated[list[RevisionPart], Field(max_length=MAX_CHANGES)] = []


class SessionPart(Part):
    """The session itself."""

    id: Id = ""
    title: Name = ""
    status: Annotated[str, among(Session.Status.values)] = Session.Status.ACTIVE.value
    mode: Mode = Session.Mode.AGENT.value
    replies: Annotated[str, among(Session.Replies.values)] = Session.Replies.ALL.value
    replies_auto: bool = False
    agent: Short = ""
    provider: Short = ""
    model: Name = ""
    system_prompt: Annotated[Text, Field(max_length=MAX_PROMPT_CHARS)] = ""
    config: JsonObject = {}
    total_tokens: Count = 0
    context_used: Count | None = None
    context_window: Count | None = None
    revision: Count = 0
    parent_session: Id = ""
    parent_message_id: Id = ""
    archived_at: Time | None = None
    created_at: Time | None = None
    updated_at: Time | None = None


class Document(Part):
    """A session with all of its data."""

    format: Annotated[str, among([FORMAT])] = FORMAT
    version: Literal[1] = 1
    session: SessionPart
    changes: Annotated[list[ChangePart], Field(max_length=MAX_CHANGES)] = []
    requests: Annotated[list[RequestPart], Field(max_length=MAX_MESSAGES)] = []
    messages: Annotated[list[MessagePart], Field(max_length=MAX_MESSAGES)] = []

    def began(self) -> datetime | None:
        """Return the time at which the session began, or else that of the first message; None if neither is known."""
        return self.session.created_at or next((each.timestamp for each in self.messages if each.timestamp), None)
