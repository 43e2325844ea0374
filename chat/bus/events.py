"""The events of a session, and their form on the channel layer.

A durable event has the `revision` that its change gave the session (LIVE-02). All other events are hints: a client that
misses one gets its content with a later durable event or from the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from agents.messages import Json
from chat.session_snapshot import Activity, AgentStatus, CompactionOutcome, context_percent
from chat.snapshots import MessageSnapshot

# Upper bounds, in characters, for the record of a file and for a pair of positions.
FILE_WEIGHT = 500
PLACES_WEIGHT = 24

MessageEventName = Literal[
    "turn_start",
    "user_message",
    "text_delta",
    "reasoning_delta",
    "response_done",
    "tool_exec_start",
    "tool_exec_end",
    "turn_done",
    "error",
    "message_updated",
]


@dataclass(frozen=True, slots=True)
class MessageChanged:
    """A message was added or changed. `message` is None if it is too large to send; receivers then read the row.

    `details` are the event's other values, such as the usage of the whole response.
    """

    name: MessageEventName
    revision: int
    id: str
    message: MessageSnapshot | None
    details: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MessageRemoved:
    revision: int
    id: str


@dataclass(frozen=True, slots=True)
class MessagesShifted:
    """All messages from position `start` on moved by `by` positions, and have this revision."""

    revision: int
    start: int
    by: int


@dataclass(frozen=True, slots=True)
class ContextChanged:
    """The texts and tool calls in these positions are `included` in the context, or excluded from it.

    `places` are pairs of a first and a last position. Messages that changed have this revision.
    """

    revision: int
    included: bool
    places: Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class SessionChanged:
    """The session's own fields changed (title, model, prompt, sharing …). Receivers read the row."""

    revision: int


@dataclass(frozen=True, slots=True)
class TextAppended:
    """More text of a streaming message, or of the `arguments` of a call that the model is writing.

    `offset` is the number of characters before `text`.
    """

    id: str
    offset: int
    text: str
    reasoning: bool = False
    arguments: bool = False


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """agent_status (RUN-03).

    Before a retry, `code` is that of the error, and the model is asked again after `retry_in` seconds. While the agent
    waits for another agent, `asked` is the record of the subsession, in the form of `ChatMessage.subsession`.
    """

    status: AgentStatus
    tool_name: str = ""
    activity: Activity = ""
    code: str = ""
    retry_in: int = 0
    asked: Json | None = None


@dataclass(frozen=True, slots=True)
class UsageChanged:
    """token_usage (RUN-04)."""

    context_used: int | None
    context_window: int | None
    session_total_tokens: int
    model: str

    @property
    def context_percent(self) -> float | None:
        return context_percent(self.context_used, self.context_window)


@dataclass(frozen=True, slots=True)
class RunCancelled:
    """agent_cancelled: a user stopped the turn."""

    turn_id: str


@dataclass(frozen=True, slots=True)
class FilesChanged:
    """files_changed: session files have changed."""


@dataclass(frozen=True, slots=True)
class CompactionEnded:
    """The agent has made a summary of `messages` messages, or could not make one.

    `error` is the problem in English, and `words` its template and values for translation.
    """

    outcome: CompactionOutcome
    messages: int = 0
    error: str = ""
    words: Json | None = None


@dataclass(frozen=True, slots=True)
class AccessChanged:
    """A user's rights in the session changed. Receivers check the access of their viewers again (LIVE-06)."""


ChatEvent = (
    MessageChanged
    | MessageRemoved
    | MessagesShifted
    | ContextChanged
    | SessionChanged
    | TextAppended
    | StatusChanged
    | UsageChanged
    | RunCancelled
    | FilesChanged
    | CompactionEnded
    | AccessChanged
)
Durable = MessageChanged | MessageRemoved | MessagesShifted | ContextChanged | SessionChanged

_TYPES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        MessageChanged,
        MessageRemoved,
        MessagesShifted,
        ContextChanged,
        SessionChanged,
        TextAppended,
        StatusChanged,
        UsageChanged,
        RunCancelled,
        FilesChanged,
        CompactionEnded,
        AccessChanged,
    )
}
_FIELDS = {name: tuple(field.name for field in fields(kind)) for name, kind in _TYPES.items()}


def weight(event: ChatEvent) -> int:
    """Return an upper bound for the characters of an event on the channel layer."""
    match event:
        case TextAppended(_, _, text):
            return 200 + len(text)
        case MessageChanged(message=MessageSnapshot(text=text, tool=tool, attachments=files), details=details):
            carried = len(tool.result) + len(str(tool.arguments)) if tool else 0
            return 2500 + len(text) + carried + len(str(details)) + FILE_WEIGHT * len(files)
        case ContextChanged(places=places):
            return 200 + PLACES_WEIGHT * len(places)
        case _:
            return 600


def encode(event: ChatEvent) -> Json:
    """Return an event's form on the channel layer."""
    kind = type(event).__name__
    values = {"e": kind, **{name: getattr(event, name) for name in _FIELDS[kind]}}
    if isinstance(event, MessageChanged) and event.message is not None:
        values["message"] = event.message.to_json()
    if isinstance(event, TextAppended) and not event.arguments:
        del values["arguments"]  # processes of earlier releases do not accept this field
    if isinstance(event, StatusChanged) and event.asked is None:
        del values["asked"]  # processes of earlier releases do not accept this field
    return values


def decode(data: Json) -> ChatEvent:
    """Return the event that `encode` encoded. Raise KeyError or TypeError for other data."""
    values = {key: value for key, value in data.items() if key != "e"}
    if values.get("message") is not None:
        values["message"] = MessageSnapshot.from_json(values["message"])
    event: ChatEvent = _TYPES[data["e"]](**values)
    return event
