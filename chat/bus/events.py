"""The events of a session: a closed union, with their form on the channel layer.

A durable event carries the session's `revision` that it made (LIVE-02); the others are hints that some durable
event beside them, or the next look at the rows, makes good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from agents.messages import Json
from chat.snapshots import AgentStatus, MessageSnapshot, context_percent

# A file's name and figures; two places.
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
    """A message was added or changed. `message` is None if it is too large to send: receivers then read the row.

    `details` are what the event says beside the row, such as the whole response's usage.
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
    """All messages from the place `start` on stand `by` places later, and have this revision."""

    revision: int
    start: int
    by: int


@dataclass(frozen=True, slots=True)
class ContextChanged:
    """What is said in these places, from a first to a last one each, is `included` now, and has this revision where it
    was not before."""

    revision: int
    included: bool
    places: Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class SessionChanged:
    """The session's title, model, prompt, sharing … changed. Receivers read the row."""

    revision: int


@dataclass(frozen=True, slots=True)
class TextAppended:
    """More text of a streaming message. `offset` counts characters from its start."""

    id: str
    offset: int
    text: str
    reasoning: bool = False


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """agent_status (RUN-03)."""

    status: AgentStatus
    tool_name: str = ""


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
class AccessChanged:
    """The rights of a user in the session changed: check again who may listen (LIVE-06)."""


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
        AccessChanged,
    )
}
_FIELDS = {name: tuple(field.name for field in fields(kind)) for name, kind in _TYPES.items()}


def weight(event: ChatEvent) -> int:
    """Give a bound for the characters that an event has on the channel layer."""
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
    """Give an event the form in which it crosses the channel layer."""
    kind = type(event).__name__
    values = {"e": kind, **{name: getattr(event, name) for name in _FIELDS[kind]}}
    if isinstance(event, MessageChanged) and event.message is not None:
        values["message"] = event.message.to_json()
    return values


def decode(data: Json) -> ChatEvent:
    """Read an event back. Raises KeyError or TypeError on anything that `encode` did not write."""
    values = {key: value for key, value in data.items() if key != "e"}
    if values.get("message") is not None:
        values["message"] = MessageSnapshot.from_json(values["message"])
    event: ChatEvent = _TYPES[data["e"]](**values)
    return event
