"""The events of a session as clients receive them: what event_json.py makes, and what the API describes.

A dictionary stands for an object of the API where its type says so; `chat/api/schemas.py` resolves these names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired, get_args

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict  # that of typing is not supported by pydantic before Python 3.12

from agents.errors import Remedy
from agents.messages import Json
from chat.session_snapshot import Activity, AgentStatus, CompactionOutcome

# A key that JSON Schema does not have: the name of the schema that describes the object.
DESCRIBED_BY = "x-described-by"

Message = Annotated[Json, WithJsonSchema({DESCRIBED_BY: "MessageOut"})]
Row = Annotated[Json, WithJsonSchema({DESCRIBED_BY: "EventRow"})]
SyncedMessage = Annotated[Json, WithJsonSchema({DESCRIBED_BY: "SyncedMessage"})]
Session = Annotated[Json, WithJsonSchema({DESCRIBED_BY: "SessionState"})]
Usage = Annotated[Json, WithJsonSchema({DESCRIBED_BY: "TokenUsage"})]
Timestamp = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Revision = Annotated[int, Field(description="The session's revision after this event")]
Offset = Annotated[int, Field(description="The length of the text before, in Unicode code points")]


class TurnStartEvent(TypedDict):
    """A turn begins."""

    type: Literal["turn_start"]
    revision: Revision
    id: str
    turn_id: str
    timestamp: Timestamp
    row: Row


class TurnDoneEvent(TypedDict):
    """A turn is over. The `status` of its `row` is `complete`, `interrupted` or `failed`."""

    type: Literal["turn_done"]
    revision: Revision
    id: str
    turn_id: str
    timestamp: Timestamp
    duration_seconds: float | None
    row: Row


class UserMessageEvent(TypedDict):
    """A person's message is part of the conversation: a new one, or one that was queued."""

    type: Literal["user_message"]
    revision: Revision
    id: str
    text: str
    timestamp: Timestamp
    turn_id: str
    sender: str
    model: str
    row: Row


class TextDeltaEvent(TypedDict):
    """More of a text. The first delta of a message has a `revision` and the message's `row`, later ones do not."""

    type: Literal["text_delta"]
    revision: NotRequired[Revision]
    id: str
    offset: Offset
    text: str
    timestamp: NotRequired[Timestamp]
    model: NotRequired[str]
    row: NotRequired[Row]


class ToolCallDeltaEvent(TypedDict):
    """More of the JSON text of a call's arguments, while the model writes them; from `offset` on.

    The message came before: a `tool_group` that is `streaming`. It is replaced by the whole call.
    """

    type: Literal["tool_call_delta"]
    id: str
    offset: int
    text: str


class ReasoningDeltaEvent(TypedDict):
    """More of the model's reasoning, in the form of `text_delta`."""

    type: Literal["reasoning_delta"]
    revision: NotRequired[Revision]
    id: str
    offset: Offset
    text: str
    timestamp: NotRequired[Timestamp]
    model: NotRequired[str]
    row: NotRequired[Row]


class ResponseDoneEvent(TypedDict):
    """The model has finished a response."""

    type: Literal["response_done"]
    revision: Revision
    id: str
    length: Annotated[int, Field(description="The length of the response's last text, in Unicode code points")]
    duration_ms: int | None
    usage: Usage
    row: Row


class ToolCall(TypedDict):
    """A tool call of the model."""

    id: str
    name: str
    arguments: Any


class ToolResult(TypedDict):
    """The result of a tool call."""

    tool_call_id: str
    content: str
    is_error: bool


class ToolExecStartEvent(TypedDict):
    """A tool begins."""

    type: Literal["tool_exec_start"]
    revision: Revision
    id: str
    tool_call: ToolCall | None
    timestamp: Timestamp
    model: str
    row: Row


class ToolExecEndEvent(TypedDict):
    """A tool has ended."""

    type: Literal["tool_exec_end"]
    revision: Revision
    id: str
    tool_result: ToolResult | None
    timestamp: Timestamp | None
    duration_ms: int | None
    row: Row


class ErrorEvent(TypedDict):
    """The turn has failed. `message` is for people, `code` and `remedy` are for programs."""

    type: Literal["error"]
    revision: Revision
    id: str
    message: str
    timestamp: Timestamp
    model: str
    code: str
    remedy: Annotated[str, WithJsonSchema({"type": "string", "enum": list(get_args(Remedy))})]
    row: Row


class MessageUpdatedEvent(TypedDict):
    """A message as it is now: new, changed, ended, queued, excluded or included."""

    type: Literal["message_updated"]
    revision: Revision
    id: str
    message: Message


class MessageRemovedEvent(TypedDict):
    """A message was removed or withdrawn."""

    type: Literal["message_removed"]
    revision: Revision
    id: str


# `from` is a keyword of Python.
_From = TypedDict("_From", {"from": Annotated[int, Field(description="The first `sequence` that moves")]})


class MessagesShiftedEvent(_From):
    """Messages have moved: all from a `sequence` on whose `revision` is less. They get this revision."""

    type: Literal["messages_shifted"]
    revision: Revision
    by: Annotated[int, Field(description="How many places they move; negative: to earlier places")]


class ContextChangedEvent(TypedDict):
    """Texts, reasoning and tool calls in some places were excluded from the context, or included again."""

    type: Literal["context_changed"]
    revision: Revision
    included: bool
    places: Annotated[Sequence[Sequence[int]], Field(description="Ranges: the first and the last `sequence` of each")]


class SessionUpdatedEvent(TypedDict):
    """The session as it is now."""

    type: Literal["session_updated"]
    revision: Revision
    session: Session | None


class AgentStatusEvent(TypedDict):
    """What the agent is doing."""

    type: Literal["agent_status"]
    status: AgentStatus
    tool_name: NotRequired[Annotated[str, Field(description="With `tool_calling`")]]
    activity: NotRequired[
        Annotated[
            Activity,
            Field(description="With `thinking`: `compacting` instead of answering, `retrying` after a failed request"),
        ]
    ]
    code: NotRequired[Annotated[str, Field(description="With `retrying`: the code of the error")]]
    retry_in: NotRequired[Annotated[int, Field(description="With `retrying`: seconds until the next request")]]


class TokenUsageEvent(TypedDict):
    """The session's use of tokens, after each response."""

    type: Literal["token_usage"]
    context_used: int | None
    context_window: int | None
    context_percent: float | None
    session_total_tokens: int
    model: str


class AgentCancelledEvent(TypedDict):
    """A person stopped the turn."""

    type: Literal["agent_cancelled"]
    turn_id: str


class FilesChangedEvent(TypedDict):
    """Files of the session's workspace have changed."""

    type: Literal["files_changed"]


class CompactionEndedEvent(TypedDict):
    """A compaction has ended. `failed` has an `error`; `done` counts the messages that the summary stands for."""

    type: Literal["compaction_ended"]
    outcome: CompactionOutcome
    messages: int
    error: str


class PresentPerson(TypedDict):
    """A person who has the session open."""

    user_id: int
    name: str
    typing: bool


class PresenceEvent(TypedDict):
    """Who has the session open, yourself included: all people, or the first 20 of them. It replaces the last one."""

    type: Literal["presence"]
    people: list[PresentPerson]
    count: Annotated[int, Field(description="The number of all people who have the session open")]


class Editor(TypedDict):
    """A person who has an editor open."""

    id: Annotated[str, Field(description="The id of the message, or system_prompt")]
    user_id: int
    name: str


class EditorsEvent(TypedDict):
    """Who is editing which message, yourself included: at most 40 editors. It replaces the last one."""

    type: Literal["editing"]
    editors: list[Editor]


class ChangesEvent(TypedDict):
    """What changed since a revision. The last frame of several has `more` false, and `removed` and `session`."""

    type: Literal["changes"]
    since: int
    revision: Annotated[int, Field(description="The session's revision after the last frame")]
    anew: Annotated[bool, Field(description="The frames hold all messages: forget every other one")]
    part: Annotated[int, Field(description="The number of the frame, from 0")]
    more: bool
    messages: list[SyncedMessage]
    removed: Annotated[list[str], Field(description="Ids of messages")]
    session: Session | None


MessageEvent = (
    TurnStartEvent
    | TurnDoneEvent
    | UserMessageEvent
    | TextDeltaEvent
    | ReasoningDeltaEvent
    | ToolCallDeltaEvent
    | ResponseDoneEvent
    | ToolExecStartEvent
    | ToolExecEndEvent
    | ErrorEvent
    | MessageUpdatedEvent
    | MessageRemovedEvent
)
SessionEvent = (
    MessageEvent
    | MessagesShiftedEvent
    | ContextChangedEvent
    | SessionUpdatedEvent
    | AgentStatusEvent
    | TokenUsageEvent
    | AgentCancelledEvent
    | FilesChangedEvent
    | CompactionEndedEvent
)
# Everything that a stream of events sends. Sockets also send answers, which docs/protocol.md describes.
Event = Annotated[SessionEvent | PresenceEvent | EditorsEvent | ChangesEvent, Field(discriminator="type")]
