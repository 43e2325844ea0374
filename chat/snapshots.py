"""Messages as plain values, for pages, sockets and API clients alike."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal
from operator import attrgetter
from typing import Any, get_args

from agents.errors import Remedy
from agents.messages import Json
from agents.prices import Money
from agents.sources import cited, read_sources
from chat.models import Attachment, ChatMessage, Session, attached_to

# The key of `ChatMessage.arguments` of a user's message for where it mentions agents.
AGENT_MENTIONS = "agents"


@dataclass(frozen=True, slots=True)
class SubsessionSnapshot:
    """The session in which another agent does what a call asks for.

    `tokens` and `costs` are what it has used, with sessions below it; `tokens` is None while it works. `waits` is what
    that session waits for from people: "approval", "answer" or "".
    """

    id: str
    agent: str
    title: str
    tokens: int | None = None
    costs: tuple[Json, ...] = ()
    waits: str = ""

    @classmethod
    def from_json(cls, data: object) -> SubsessionSnapshot | None:
        """Read what a row has; None for something else that was set by hand."""
        if not isinstance(data, dict) or not isinstance(data.get("id"), str):
            return None
        tokens, costs = data.get("tokens"), data.get("costs")
        return cls(
            data["id"],
            str(data.get("agent", "")),
            str(data.get("title", "")),
            tokens if type(tokens) is int else None,
            tuple(costs) if isinstance(costs, list | tuple) else (),
            str(data.get("waits", "")),
        )


@dataclass(frozen=True, slots=True)
class ToolSnapshot:
    """A tool call with its result; times are ISO 8601.

    `question` is what people are asked ("" if nothing), and `answer` what they have answered, with who and when.
    `question` is "elicitation" while a running call waits for an answer to the last of what it has `asked`.
    `approval` has what a call needs and each decision, if one person alone cannot approve it.
    `origin` is where foreign text in the result comes from, "" if there is none. `files` are those of the workspace
    that the tool has returned: path, media_type and size of each. `subsession` is the session of another agent that the
    call asks.
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
    """Where a text mentions a person: its characters from `start` on, the @ included."""

    user_id: int
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class AgentMentionSnapshot:
    """Where a text mentions an agent of the session, by its name, its title or @agent."""

    agent: str
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class UsageSnapshot:
    """Tokens and latency of the response whose last row this is (MSG-06)."""

    input_tokens: int | None
    output_tokens: int | None
    total_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    first_token_latency_ms: int | None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ErrorSnapshot:
    """Why a turn failed, for programs: `remedy` is what can mend it, "retry", another "model", or a "setting"."""

    code: str
    remedy: str


@dataclass(frozen=True, slots=True)
class ScheduleSnapshot:
    """How often the schedule that has sent a message was due then: a cron expression, and its IANA time zone."""

    cron: str
    zone: str


@dataclass(frozen=True, slots=True)
class AttachmentSnapshot:
    """A file that came with a message: `size` in bytes, an image's `width` and `height` in pixels."""

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

    `words`: of a text that Parley itself has written, the template and values by which other languages say it.
    `edited_by` is "" unless the last edit was not its author's; `suggestions` counts the open ones. `end_reason` and
    `stopped_by` are of an interrupted turn's end. `held`: queued, and not delivered until a person sends it.
    `for_agent`: the agent is to answer it. `attempt_count` and `attempt_current`: how many attempts there are at what
    follows the message, and which of them follows it now, from 1; 0 if there is only one.
    `mode`, `agent_id` and `workflow_id` name what produced the message (MSG-09): `workflow_id` is the id of a schedule,
    and `schedule` what that was then. `summarises`: the number of messages
    that a summary stands for, and `made_at` when it was made: its `timestamp` is that of the message before it.
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
            mentions=tuple(MentionSnapshot(*each) for each in row.mentions or ()),
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
        # During an upgrade a process of the version before sends fewer fields.
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
        # Every event and every look at a session does this; asdict would copy it all, arguments too.
        values = {name: getattr(self, name) for name in _MESSAGE}
        values["usage"] = {name: getattr(self.usage, name) for name in _USAGE} if self.usage else None
        values["tool"] = {name: getattr(self.tool, name) for name in _TOOL} if self.tool else None
        if self.tool and self.tool.subsession:
            values["tool"]["subsession"] = asdict(self.tool.subsession)
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
    """Read an amount that `subsession` of a row has."""
    return Money(Decimal(str(data["amount"])), str(data["currency"]))


def _marks(row: ChatMessage) -> dict[str, Any]:
    """Return who has edited a message, and how its turn ended."""
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
    """Return the pages of a row. A text that was cut off still has all of its turn: it gets those that it cites."""
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
    """Read what a message keeps of its schedule; None if that is not what Parley writes there."""
    if not row.workflow_id or row.type != "text" or not isinstance(row.arguments, dict):
        return None
    kept = row.arguments.get("schedule")
    values = [kept.get(name) for name in ("cron", "zone")] if isinstance(kept, dict) else []
    texts = [value for value in values if isinstance(value, str)]
    return ScheduleSnapshot(*texts) if len(texts) == len(values) == 2 else None


def _agent_mentions(row: ChatMessage) -> tuple[AgentMentionSnapshot, ...]:
    """Read where a message mentions agents; nothing of what Parley does not write there, such as in a file."""
    if row.type != "text" or not isinstance(row.arguments, dict):
        return ()
    kept = row.arguments.get(AGENT_MENTIONS)
    found = [each for each in kept if isinstance(each, list)] if isinstance(kept, list) else []
    valid = [each for each in found if list(map(type, each)) == [str, int, int]]
    return tuple(AgentMentionSnapshot(*each) for each in valid)


def _error(row: ChatMessage) -> ErrorSnapshot:
    """Read what the row keeps of its error; of one that is older, or written by hand, nothing is known."""
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
        approval=row.approval,
        origin=row.origin,
        subsession=SubsessionSnapshot.from_json(row.subsession),
        files=_files(row),
        asked=[each for each in row.asked or () if isinstance(each, dict)],
    )


def _files(row: ChatMessage) -> list[Json]:
    """Return the files that a tool has returned, without what was set by hand and is none."""
    found = row.files if isinstance(row.files, list) else []
    return [
        {"path": each["path"], "media_type": each["media_type"], "size": each["size"]}
        for each in found
        if isinstance(each, dict)
        and isinstance(each.get("path"), str)
        and isinstance(each.get("media_type"), str)
        and isinstance(each.get("size"), int)
    ]
