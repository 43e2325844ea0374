"""Messages as plain values, for pages, sockets and API clients."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal
from operator import attrgetter
from typing import Any, get_args

from agents.errors import Remedy
from agents.messages import Json
from agents.prices import Money
from agents.sources import cited, read_sources
from chat.models import Attachment, ChatMessage, Session, attached_to
from chat.subsession_snapshot import SubsessionSnapshot

# The key for mentions of agents in the `ChatMessage.arguments` of a user's message.
AGENT_MENTIONS = "agents"


@dataclass(frozen=True, slots=True)
class ToolSnapshot:
    """A tool call with its result. Times are ISO 8601.

    `question` is the kind of question to people, or ""; `answer` is their answer, with the user and the time.
    `question` is "elicitation" while a running call waits for an answer to the last of the questions that it has
    `asked`. `approval` has what a call needs and each decision, if one person alone cannot approve it.

    `origin` is the source of foreign text in the result, or "". `files` are session files that the tool has
    returned: path, media_type and size of each. `subsession` is the session of another agent that works on the call.
    """

    call_id: str
    name: str
    arguments: Any
    result: str
    is_error: bool
    ended_at: str | None
    question: str = ""
    answer: Any = None
    answered_by: str = ""
    answered_by_id: int | None = None
    answered_at: str | None = None
    approval: Any = None
    origin: str = ""
    subsession: SubsessionSnapshot | None = None
    files: list[Json] = field(default_factory=list)
    asked: list[Json] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SourceSnapshot:
    """A page that a message cites by its number, or that a tool has found."""

    number: int
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class MentionSnapshot:
    """A mention of a user in a text: `length` characters from `start` on, including the @."""

    user_id: int
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class AgentMentionSnapshot:
    """A mention of an agent of the session in a text, by its name, its title or @agent."""

    agent: str
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class UsageSnapshot:
    """Tokens and latency of a response, on its last row (MSG-06)."""

    input_tokens: int | None
    output_tokens: int | None
    total_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    first_token_latency_ms: int | None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ErrorSnapshot:
    """The error of a turn, for programs. `remedy` is what can fix it: "retry", another "model", or a "setting"."""

    code: str
    remedy: str


@dataclass(frozen=True, slots=True)
class ScheduleSnapshot:
    """The times of a schedule when it sent a message: a cron expression, and its IANA time zone."""

    cron: str
    zone: str


@dataclass(frozen=True, slots=True)
class AttachmentSnapshot:
    """A file of a message. `size` is in bytes; `width` and `height` of an image are in pixels."""

    id: str
    name: str
    kind: str
    media_type: str
    size: int
    width: int | None
    height: int | None
    pages: int | None

    @classmethod
    def from_row(cls, row: Attachment) -> AttachmentSnapshot:
        return cls(row.pk, row.name, row.kind, row.media_type, row.size, row.width, row.height, row.pages)


@dataclass(frozen=True, slots=True)
class MessageSnapshot:
    """One message. `timestamp` is ISO 8601 with offset; `text` of a streaming message is what is known so far.

    `words` is set if Parley has written the text: the template and values for other languages. `edited_by` is "" unless
    the last edit was by another user than the author; `suggestions` is the number of open ones. `end_reason` and
    `stopped_by` are set at an interrupted turn's end. `held` is True if the message is queued until a user sends it.
    `for_agent` is True if the agent has to answer it. `attempt_count` is the number of attempts that follow the
    message, and `attempt_current` the number of the current one, from 1; both are 0 if there is only one.

    `mode`, `agent_id` and `workflow_id` are what produced the message (MSG-09). `workflow_id` is the id of a schedule,
    and `schedule` its times then. `summarises` is the number of messages that a summary replaces, and `made_at` when it
    was made, because its `timestamp` is that of the message before it.
    """

    id: str
    session_id: str
    sequence: int | None
    revision: int
    type: str
    role: str
    status: str
    text: str
    sender: str
    user_id: int | None
    model: str
    provider: str
    turn_id: str
    response_id: str
    include_in_context: bool
    edited: bool
    timestamp: str
    duration_ms: int | None
    duration_seconds: float | None
    usage: UsageSnapshot | None
    tool: ToolSnapshot | None
    attachments: tuple[AttachmentSnapshot, ...] = ()
    words: Json | None = None
    mode: str = Session.Mode.AGENT.value
    agent_id: str = ""
    workflow_id: str = ""
    schedule: ScheduleSnapshot | None = None
    error: ErrorSnapshot | None = None
    edited_by: str = ""
    edited_by_id: int | None = None
    suggested_by: str = ""
    suggestions: int = 0
    end_reason: str = ""
    stopped_by: str = ""
    stopped_by_id: int | None = None
    held: bool = False
    for_agent: bool = True
    sources: tuple[SourceSnapshot, ...] = ()
    mentions: tuple[MentionSnapshot, ...] = ()
    agent_mentions: tuple[AgentMentionSnapshot, ...] = ()
    summarises: int | None = None
    made_at: str | None = None
    attempt_count: int = 0
    attempt_current: int = 0

    @classmethod
    def from_row(cls, row: ChatMessage) -> MessageSnapshot:
        return cls(
            id=row.id,
            session_id=row.session_id,
            sequence=row.sequence,
            revision=row.revision,
            type=row.type,
            role=row.role,
            status=row.status,
            text=row.text,
            sender=row.sender or ("User" if row.role == "user" else ""),
            user_id=row.user_id,
            model=row.model,
            provider=row.provider,
            turn_id=row.turn_id,
            response_id=row.response_id,
            include_in_context=row.include_in_context,
            timestamp=row.timestamp.isoformat(),
            duration_ms=row.duration_ms,
            duration_seconds=row.duration_seconds,
            usage=_usage(row),
            tool=_tool(row) if row.type == "tool_group" else None,
            words=_words(row),
            error=_error(row) if row.type == "error" else None,
            attachments=tuple(map(AttachmentSnapshot.from_row, attached_to(row))),
            held=row.held,
            sources=_sources(row),
            mentions=_mentions(row),
            agent_mentions=_agent_mentions(row),
            for_agent=row.for_agent,
            summarises=row.summarises,
            made_at=row.created_at.isoformat() if row.summarises is not None else None,
            attempt_count=row.attempt_count,
            attempt_current=row.attempt_current,
            mode=row.mode,
            agent_id=row.agent_id,
            workflow_id=row.workflow_id,
            schedule=_schedule(row),
            **_marks(row),
        )

    @classmethod
    def from_json(cls, data: Json) -> MessageSnapshot:
        # During an upgrade, a process of the previous version sends fewer fields.
        values = {name: data[name] for name in _MESSAGE if name in data}
        values["usage"] = UsageSnapshot(**data["usage"]) if data["usage"] else None
        if tool := data["tool"]:
            subsession = SubsessionSnapshot.from_json(tool.get("subsession"))
            values["tool"] = ToolSnapshot(**{**tool, "subsession": subsession})
        values["error"] = ErrorSnapshot(**data["error"]) if data.get("error") else None
        values["schedule"] = ScheduleSnapshot(**data["schedule"]) if data.get("schedule") else None
        values["attachments"] = tuple(AttachmentSnapshot(**each) for each in data["attachments"])
        values["sources"] = tuple(SourceSnapshot(**each) for each in data.get("sources", ()))
        values["mentions"] = tuple(MentionSnapshot(**each) for each in data.get("mentions", ()))
        values["agent_mentions"] = tuple(AgentMentionSnapshot(**each) for each in data.get("agent_mentions", ()))
        return cls(**values)

    def to_json(self) -> Json:
        # This is called for every event and every read of a session. asdict would copy everything, including arguments.
        values = {name: getattr(self, name) for name in _MESSAGE}
        values["usage"] = {name: getattr(self.usage, name) for name in _USAGE} if self.usage else None
        values["tool"] = {name: getattr(self.tool, name) for name in _TOOL} if self.tool else None
        if self.tool and self.tool.subsession:
            values["tool"]["subsession"] = self.tool.subsession.to_json()
        values["error"] = asdict(self.error) if self.error else None
        values["schedule"] = asdict(self.schedule) if self.schedule else None
        values["attachments"] = [asdict(each) for each in self.attachments]
        values["sources"] = [asdict(each) for each in self.sources]
        values["mentions"] = [asdict(each) for each in self.mentions]
        values["agent_mentions"] = [asdict(each) for each in self.agent_mentions]
        return values


_MESSAGE, _USAGE, _TOOL = (
    tuple(each.name for each in fields(kind)) for kind in (MessageSnapshot, UsageSnapshot, ToolSnapshot)
)
_usage_values = attrgetter(*_USAGE)


def money_of(data: Json) -> Money:
    """Return an amount from a row's `subsession`."""
    return Money(Decimal(str(data["amount"])), str(data["currency"]))


def _marks(row: ChatMessage) -> dict[str, Any]:
    """Return the fields about a message's editor, and about the end of its turn."""
    return {
        "edited": row.edited_at is not None,
        "edited_by": row.edited_by_name,
        "edited_by_id": row.edited_by_id,
        "suggested_by": row.suggested_by_name,
        "suggestions": row.open_suggestions,
        "end_reason": row.end_reason,
        "stopped_by": row.stopped_by_name,
        "stopped_by_id": row.stopped_by_id,
    }


def _usage(row: ChatMessage) -> UsageSnapshot | None:
    values = _usage_values(row)
    return UsageSnapshot(*values) if set(values) != {None} else None


def _sources(row: ChatMessage) -> tuple[SourceSnapshot, ...]:
    """Return the pages of a row. A text that was cut off has all pages of its turn, so return only those it cites."""
    if not row.sources:
        return ()
    sources = read_sources(row.sources)
    if row.type == "text" and row.status == "interrupted":
        sources = cited(row.text, sources)
    return tuple(SourceSnapshot(source.number, source.title, source.url) for source in sources)


def _words(row: ChatMessage) -> Json | None:
    if row.type not in ("error", "text") or not isinstance(row.provider_data, dict):
        return None
    words = row.provider_data.get("words")
    return words if isinstance(words, dict) else None


def _schedule(row: ChatMessage) -> ScheduleSnapshot | None:
    """Return the schedule that a message keeps, or None if it has another form than Parley writes."""
    if not row.workflow_id or row.type != "text" or not isinstance(row.arguments, dict):
        return None
    kept = row.arguments.get("schedule")
    values = [kept.get(name) for name in ("cron", "zone")] if isinstance(kept, dict) else []
    texts = [value for value in values if isinstance(value, str)]
    return ScheduleSnapshot(*texts) if len(texts) == len(values) == 2 else None


def _mentions(row: ChatMessage) -> tuple[MentionSnapshot, ...]:
    """Return the mentions of users in a message. Entries of another form are left out."""
    found = row.mentions if isinstance(row.mentions, list) else []
    valid = [each for each in found if isinstance(each, list) and list(map(type, each)) == [int, int, int]]
    return tuple(MentionSnapshot(*each) for each in valid)


def _agent_mentions(row: ChatMessage) -> tuple[AgentMentionSnapshot, ...]:
    """Return the mentions of agents in a message. Entries of another form, such as from a file, are left out."""
    if row.type != "text" or not isinstance(row.arguments, dict):
        return ()
    kept = row.arguments.get(AGENT_MENTIONS)
    found = [each for each in kept if isinstance(each, list)] if isinstance(kept, list) else []
    valid = [each for each in found if list(map(type, each)) == [str, int, int]]
    return tuple(AgentMentionSnapshot(*each) for each in valid)


def _error(row: ChatMessage) -> ErrorSnapshot:
    """Return the error that a row keeps. Older rows, and those with an invalid value, have no code."""
    kept = row.provider_data.get("error") if isinstance(row.provider_data, dict) else None
    code, remedy = (kept.get("code"), kept.get("remedy")) if isinstance(kept, dict) else (None, None)
    known = remedy if remedy in get_args(Remedy) else "retry"
    return ErrorSnapshot(code if isinstance(code, str) else "", str(known))


def _tool(row: ChatMessage) -> ToolSnapshot:
    return ToolSnapshot(
        call_id=row.tool_call_id,
        name=row.tool_name or "unknown",
        arguments={} if row.arguments is None else row.arguments,
        result=row.result,
        is_error=row.is_error,
        ended_at=row.ended_at.isoformat() if row.ended_at else None,
        question="elicitation" if row.is_asking else row.question,
        answer=row.answer,
        answered_by=row.answered_by_name,
        answered_by_id=row.answered_by_id,
        answered_at=row.answered_at.isoformat() if row.answered_at else None,
        approval=row.approval if isinstance(row.approval, dict) else None,
        origin=row.origin,
        subsession=SubsessionSnapshot.from_json(row.subsession),
        files=_files(row),
        asked=[each for each in row.asked if isinstance(each, dict)] if isinstance(row.asked, list) else [],
    )


def _files(row: ChatMessage) -> list[Json]:
    """Return the files that a tool has returned. Invalid entries, such as from an edit, are left out."""
    found = row.files if isinstance(row.files, list) else []
    return [
        {"path": each["path"], "media_type": each["media_type"], "size": each["size"]}
        for each in found
        if isinstance(each, dict)
        and isinstance(each.get("path"), str)
        and isinstance(each.get("media_type"), str)
        and isinstance(each.get("size"), int)
    ]


def json_chars(value: object) -> int:
    """Return how many characters a value has as JSON. An empty value counts as nothing."""
    return len(json.dumps(value, ensure_ascii=False)) if value else 0
