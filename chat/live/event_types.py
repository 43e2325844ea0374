"""The events of a session as clients receive them. event_json.py creates them, and the API describes them.

Where a type says so, a dictionary is described as an object of the API; `chat/api/schemas.py` resolves these names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired, get_args

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict  # that of typing is not supported by pydantic before Python 3.12

from agents.errors import Remedy
from agents.messages import Json
from chat.session_snapshot import Activity, AgentStatus, CompactionOutcome

# A private key in a JSON Schema: the name of the schema that describes the object.
DESCRIBED_BY = "x-described-by"

Message = Annotated[Json, WithJsonSchema({DESCRIBED_BY: "MessageOut"})]
Row = Annotated[Json, WithJsonSchema({DESCRIBED_BY: "EventRow"})]
SyncedMessage = Annotated[Json, WithJsonSchema({DESCRIBED_BY: "SyncedMessage"})]
Session = Annotated[Json, WithJsonSchema({DESCRIBED_BY: "SessionState"})]
Usage = Annotated[Json, WithJsonSchema({DESCRIBED_BY: "TokenUsage"})]
REMEDY = "What can help: `retry` the request later, choose another `model`, or change a `setting` as administrator."
Timestamp = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Revision = Annotated[int, Field(description="The revision of the session after this event.")]
MessageId = Annotated[str, Field(description="The id of the message.")]
TurnId = Annotated[str, Field(description="The id of the turn.")]
Model = Annotated[str, Field(description="The name of the model.")]
AddedText = Annotated[str, Field(description="The text to append at `offset`.")]
Began = Annotated[Timestamp, Field(description="The time at which the message began.")]
Offset = Annotated[int, Field(description="The number of Unicode code points before this text.")]


class TurnStartEvent(TypedDict):
    """A turn has started."""

    type: Literal["turn_start"]
    revision: Revision
    id: Annotated[str, Field(description="The id of the message that marks the start.")]
    turn_id: TurnId
    timestamp: Annotated[Timestamp, Field(description="The time of the start.")]
    row: Row


class TurnDoneEvent(TypedDict):
    """A turn has ended. The `status` of its `row` is `complete`, `interrupted` or `failed`."""

    type: Literal["turn_done"]
    revision: Revision
    id: Annotated[str, Field(description="The id of the message that marks the end.")]
    turn_id: TurnId
    timestamp: Annotated[Timestamp, Field(description="The time of the end.")]
    duration_seconds: Annotated[float | None, Field(description="The duration of the turn in seconds.")]
    row: Row


class UserMessageEvent(TypedDict):
    """A message of a user was added to the conversation. It is new, or was queued until now."""

    type: Literal["user_message"]
    revision: Revision
    id: MessageId
    text: Annotated[str, Field(description="The text of the message.")]
    timestamp: Annotated[Timestamp, Field(description="The time at which the user sent the message.")]
    turn_id: Annotated[str, Field(description="The id of the turn. Empty if no agent answers the message.")]
    sender: Annotated[str, Field(description="The name of the user.")]
    model: Annotated[str, Field(description="The model that answers.")]
    row: Row


class TextDeltaEvent(TypedDict):
    """The next part of a streaming text. Only the first delta of a message has the fields that are not required."""

    type: Literal["text_delta"]
    revision: NotRequired[Revision]
    id: MessageId
    offset: Offset
    text: AddedText
    timestamp: NotRequired[Began]
    model: NotRequired[Model]
    row: NotRequired[Row]


class ToolCallDeltaEvent(TypedDict):
    """The next part of the JSON text of a call's arguments, while the model writes them.

    An earlier `message_updated` contained the message: a `tool_group` with the status `streaming`. A later event
    replaces it by the complete call.
    """

    type: Literal["tool_call_delta"]
    id: MessageId
    offset: Offset
    text: AddedText


class ReasoningDeltaEvent(TypedDict):
    """The next part of the model's reasoning, with the fields of `text_delta`."""

    type: Literal["reasoning_delta"]
    revision: NotRequired[Revision]
    id: MessageId
    offset: Offset
    text: AddedText
    timestamp: NotRequired[Began]
    model: NotRequired[Model]
    row: NotRequired[Row]


class ResponseDoneEvent(TypedDict):
    """The model has finished a response."""

    type: Literal["response_done"]
    revision: Revision
    id: Annotated[str, Field(description="The id of the response's last text, or of its last message.")]
    length: Annotated[
        int,
        Field(description="The length of the last text of the response, in Unicode code points."),
    ]
    duration_ms: Annotated[int | None, Field(description="The duration of the response in milliseconds.")]
    usage: Usage
    row: Row


class ToolCall(TypedDict):
    """A tool call of the model."""

    id: Annotated[str, Field(description="The id that the model gave to the call.")]
    name: Annotated[str, Field(description="The name of the tool.")]
    arguments: Annotated[Any, Field(description="The arguments of the call, usually an object.")]


class ToolResult(TypedDict):
    """The result of a tool call."""

    tool_call_id: Annotated[str, Field(description="The id of the call.")]
    content: Annotated[str, Field(description="The result as text.")]
    is_error: Annotated[bool, Field(description="Whether the call has failed.")]


class ToolExecStartEvent(TypedDict):
    """A tool has started."""

    type: Literal["tool_exec_start"]
    revision: Revision
    id: MessageId
    tool_call: Annotated[ToolCall | None, Field(description="The call that runs.")]
    timestamp: Annotated[Timestamp, Field(description="The time at which the message of the call began.")]
    model: Annotated[str, Field(description="The model that called the tool.")]
    row: Row


class ToolExecEndEvent(TypedDict):
    """A tool has ended."""

    type: Literal["tool_exec_end"]
    revision: Revision
    id: MessageId
    tool_result: Annotated[ToolResult | None, Field(description="The result of the call.")]
    timestamp: Annotated[Timestamp | None, Field(description="The time at which the tool ended. Null if unknown.")]
    duration_ms: Annotated[int | None, Field(description="The duration of the call in milliseconds. Null if unknown.")]
    row: Row


class ErrorEvent(TypedDict):
    """The turn has failed."""

    type: Literal["error"]
    revision: Revision
    id: MessageId
    message: Annotated[str, Field(description="The reason, as a sentence for users.")]
    timestamp: Annotated[Timestamp, Field(description="The time of the error.")]
    model: Model
    code: Annotated[str, Field(description="A stable code for programs, which docs/protocol.md explains.")]
    remedy: Annotated[
        str,
        WithJsonSchema({"type": "string", "enum": list(get_args(Remedy)), "description": REMEDY}),
    ]
    row: Row


class MessageUpdatedEvent(TypedDict):
    """The current state of a message that is new or was changed, completed, queued, excluded or included."""

    type: Literal["message_updated"]
    revision: Revision
    id: MessageId
    message: Message


class MessageRemovedEvent(TypedDict):
    """A message was removed or withdrawn."""

    type: Literal["message_removed"]
    revision: Revision
    id: MessageId


# `from` is a keyword of Python.
_From = TypedDict(
    "_From", {"from": Annotated[int, Field(description="The lowest `sequence` of the messages that move.")]}
)


class MessagesShiftedEvent(_From):
    """The messages from the `sequence` `from` on have moved.

    The event applies to all of them whose `revision` is less than that of the event. They get its revision.
    """

    type: Literal["messages_shifted"]
    revision: Revision
    by: Annotated[
        int, Field(description="The number to add to each `sequence`. Negative if the messages move to earlier places.")
    ]


class ContextChangedEvent(TypedDict):
    """Texts, reasoning and tool calls were excluded from the context, or included again.

    The event applies to the messages in `places` whose `include_in_context` differs from `included` and whose
    `revision` is less than that of the event. They get its revision.
    """

    type: Literal["context_changed"]
    revision: Revision
    included: Annotated[bool, Field(description="The new value of `include_in_context`.")]
    places: Annotated[
        Sequence[Sequence[int]],
        Field(description="The ranges of messages, each with the first and the last `sequence`."),
    ]


class SessionUpdatedEvent(TypedDict):
    """The current state of the session."""

    type: Literal["session_updated"]
    revision: Revision
    session: Annotated[Session | None, Field(description="The session. Null if it no longer exists.")]


class AgentStatusEvent(TypedDict):
    """The current activity of the agent."""

    type: Literal["agent_status"]
    status: Annotated[
        AgentStatus,
        Field(description="The activity of the agent. `tool_calling`: it runs a tool. `waiting`: it waits for a user."),
    ]
    tool_name: NotRequired[Annotated[str, Field(description="The name of the tool that runs, with `tool_calling`.")]]
    activity: NotRequired[
        Annotated[
            Activity,
            Field(
                description="With `thinking`. `compacting`: it summarizes earlier messages. "
                "`retrying`: it waits before it repeats a failed request."
            ),
        ]
    ]
    code: NotRequired[Annotated[str, Field(description="The code of the error, with `retrying`.")]]
    retry_in: NotRequired[Annotated[int, Field(description="The seconds until the next request, with `retrying`.")]]


class TokenUsageEvent(TypedDict):
    """The token usage of the session, sent after each response of a model."""

    type: Literal["token_usage"]
    context_used: Annotated[int | None, Field(description="The input tokens of the last request. Null if unknown.")]
    context_window: Annotated[int | None, Field(description="The maximum tokens of a request. Null if unknown.")]
    context_percent: Annotated[
        float | None,
        Field(description="`context_used` as a percentage of `context_window`. Null if one of them is unknown."),
    ]
    session_total_tokens: Annotated[int, Field(description="The input and output tokens that the session has used.")]
    model: Annotated[str, Field(description="The session's model, which `context_window` is about.")]


class AgentCancelledEvent(TypedDict):
    """A user stopped the turn."""

    type: Literal["agent_cancelled"]
    turn_id: TurnId


class FilesChangedEvent(TypedDict):
    """A tool has changed files in the session's folder."""

    type: Literal["files_changed"]


class CompactionEndedEvent(TypedDict):
    """A compaction has ended. Only with the outcome `done` has it changed the session."""

    type: Literal["compaction_ended"]
    outcome: Annotated[
        CompactionOutcome,
        Field(
            description="`changed`: messages were changed in the meantime. `nothing`: there was nothing to summarize."
        ),
    ]
    messages: Annotated[
        int, Field(description="The number of messages that the summary replaces. 0 unless the outcome is `done`.")
    ]
    error: Annotated[
        str, Field(description="The reason, as a sentence for users. Empty unless the outcome is `failed`.")
    ]


class PresentPerson(TypedDict):
    """A user who has the session open."""

    user_id: Annotated[int, Field(description="The id of the user.")]
    name: Annotated[str, Field(description="The name of the user.")]
    typing: Annotated[bool, Field(description="Whether the user is typing.")]


class PresenceEvent(TypedDict):
    """The users who have the session open, including you. Replaces the previous `presence` event."""

    type: Literal["presence"]
    people: Annotated[
        list[PresentPerson],
        Field(description="The users. If there are more than 20, the first 20 by their ids, and those who are typing."),
    ]
    count: Annotated[int, Field(description="The number of all users who have the session open.")]


class Editor(TypedDict):
    """A user who has a message or the system prompt open for editing."""

    id: Annotated[str, Field(description="The id of the message, or `system_prompt`.")]
    user_id: Annotated[int, Field(description="The id of the user.")]
    name: Annotated[str, Field(description="The name of the user.")]


class EditorsEvent(TypedDict):
    """The users who are editing messages or the system prompt, including you. Replaces the previous `editing` event."""

    type: Literal["editing"]
    editors: Annotated[
        list[Editor], Field(description="The users and what they edit. At most 40 entries, and four for each message.")
    ]


class ChangesEvent(TypedDict):
    """The changes since a revision, in one or more frames.

    Only the last frame has `more` false. It also contains `removed` and `session`.
    """

    type: Literal["changes"]
    since: Annotated[int, Field(description="The revision that the client had.")]
    revision: Annotated[int, Field(description="The revision of the session after the last frame.")]
    anew: Annotated[bool, Field(description="Whether the frames contain all messages. If true, discard all others.")]
    part: Annotated[int, Field(description="The number of the frame, from 0.")]
    more: Annotated[bool, Field(description="Whether more frames follow.")]
    messages: Annotated[list[SyncedMessage], Field(description="The messages that have changed.")]
    removed: Annotated[
        list[str], Field(description="The ids of messages that were removed. Empty unless this is the last frame.")
    ]
    session: Annotated[
        Session | None, Field(description="The state of the session. Null unless this is the last frame.")
    ]


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
# All events of an event stream. Sockets also send answers, which docs/protocol.md describes.
Event = Annotated[SessionEvent | PresenceEvent | EditorsEvent | ChangesEvent, Field(discriminator="type")]
