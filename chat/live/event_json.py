"""The JSON protocol: ChatEvents in the form for clients of /ws/sessions/<id>/ (RUN-02, docs/protocol.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import assert_never

from agents.messages import Json
from chat.bus.events import (
    AccessChanged,
    ChatEvent,
    CompactionEnded,
    ContextChanged,
    FilesChanged,
    MessageChanged,
    MessageRemoved,
    MessagesShifted,
    RunCancelled,
    SessionChanged,
    StatusChanged,
    TextAppended,
    UsageChanged,
)
from chat.live.event_types import (
    AgentCancelledEvent,
    AgentStatusEvent,
    ChangesEvent,
    CompactionEndedEvent,
    ContextChangedEvent,
    ErrorEvent,
    FilesChangedEvent,
    MessageEvent,
    MessageRemovedEvent,
    MessagesShiftedEvent,
    MessageUpdatedEvent,
    ReasoningDeltaEvent,
    ResponseDoneEvent,
    SessionEvent,
    SessionUpdatedEvent,
    TextDeltaEvent,
    TokenUsageEvent,
    ToolCall,
    ToolCallDeltaEvent,
    ToolExecEndEvent,
    ToolExecStartEvent,
    ToolResult,
    TurnDoneEvent,
    TurnStartEvent,
    UserMessageEvent,
)
from chat.queries.messages import Changes
from chat.session_snapshot import SessionSnapshot
from chat.snapshots import MessageSnapshot, json_chars

# The most messages in one frame of an answer to `sync`, and the most characters of their texts, arguments and results
# if there are several messages. Clients whose library accepts frames of 1 MiB can then read all but long messages.
MAX_MESSAGES = 200
MAX_CHARS = 200_000


def dump(frame: Mapping[str, object] | Sequence[object] | None) -> str:
    """Encode a frame of either protocol."""
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":"))


def event_frame(
    event: ChatEvent, message: MessageSnapshot | None, session: SessionSnapshot | None
) -> SessionEvent | None:
    """Return the frame of an event, or None if it is not for clients. `message` or `session` is the row concerned."""
    match event:
        case MessageChanged():
            return _message(event, message) if message else _removal(event)
        case MessageRemoved(revision, message_id):
            return MessageRemovedEvent(type="message_removed", revision=revision, id=message_id)
        case MessagesShifted(revision, start, by):
            shifted: MessagesShiftedEvent = {"type": "messages_shifted", "revision": revision, "from": start, "by": by}
            return shifted
        case ContextChanged(revision, included, places):
            return ContextChangedEvent(type="context_changed", revision=revision, included=included, places=places)
        case SessionChanged(revision):
            state = session.to_json() if session else None
            return SessionUpdatedEvent(type="session_updated", revision=revision, session=state)
        case TextAppended():
            return text_frame(event)
        case StatusChanged():
            return _status(event)
        case UsageChanged():
            return _usage(event)
        case RunCancelled(turn_id):
            return AgentCancelledEvent(type="agent_cancelled", turn_id=turn_id)
        case FilesChanged():
            return FilesChangedEvent(type="files_changed")
        case CompactionEnded(outcome, count, error):
            return CompactionEndedEvent(type="compaction_ended", outcome=outcome, messages=count, error=error)
        case AccessChanged():
            return None
        case _:
            assert_never(event)


def text_frame(event: TextAppended) -> TextDeltaEvent | ReasoningDeltaEvent | ToolCallDeltaEvent:
    if event.arguments:
        return ToolCallDeltaEvent(type="tool_call_delta", id=event.id, offset=event.offset, text=event.text)
    if event.reasoning:
        return ReasoningDeltaEvent(type="reasoning_delta", id=event.id, offset=event.offset, text=event.text)
    return TextDeltaEvent(type="text_delta", id=event.id, offset=event.offset, text=event.text)


def rest_frame(message: MessageSnapshot, text: str) -> TextDeltaEvent | ReasoningDeltaEvent | ToolCallDeltaEvent:
    """Return the frame with the text that a message has gained since its row was read."""
    offset = len(message.text)
    kind = message.type == "reasoning", message.type == "tool_group"
    return text_frame(TextAppended(message.id, offset, text[offset:], *kind))


def changes_frames(changes: Changes, since: int, have: dict[str, int], *, is_all: bool = False) -> list[ChangesEvent]:
    """Return the answer to `sync`: frames with some messages each, numbered by `part`.

    Only after the last frame (`more` is false) does the client have the revision. `have` is the length of the text that
    the client has, by streaming message: only the text from `offset` on is sent, which replaces what the client has
    from there. With `is_all`, the frames contain all messages, and the client discards what it has.
    """
    parts = list(_parts([_rest(message, have.get(message.id, 0)) for message in changes.messages])) or [[]]
    frames = [
        ChangesEvent(
            type="changes",
            since=since,
            revision=changes.revision,
            anew=is_all,
            part=number,
            more=True,
            messages=part,
            removed=[],
            session=None,
        )
        for number, part in enumerate(parts)
    ]
    last = frames[-1]
    last["more"], last["removed"], last["session"] = False, changes.removed, changes.session.to_json()
    return frames


def _rest(message: MessageSnapshot, have: int) -> Json:
    known = min(max(0, have), len(message.text)) if message.status == "streaming" else 0
    return {**message.to_json(), "offset": known, "text": message.text[known:]}


def _parts(messages: Iterable[Json]) -> Iterator[list[Json]]:
    part: list[Json] = []
    room = MAX_CHARS
    for message in messages:
        tool = message["tool"]
        size = len(message["text"]) + (len(tool["result"]) + json_chars(tool["arguments"]) if tool else 0)
        if part and (size > room or len(part) == MAX_MESSAGES):
            yield part
            part, room = [], MAX_CHARS
        part.append(message)
        room -= size
    if part:
        yield part


def _message(event: MessageChanged, message: MessageSnapshot) -> MessageEvent:
    """Return an event with its own fields and the `row`, so that a client can store the complete message.

    If the event has the text or its `length`, the `row` has no text. A client with a shorter text has lost the end of
    it, and requests it.
    """
    row = message.to_json()
    revision, id = event.revision, event.id
    match event.name:
        case "turn_start" | "turn_done":
            return _turn(event, message, row)
        case "tool_exec_start" | "tool_exec_end":
            return _tool(event, message, row)
        case "error":
            return _error(event, message, row)
        case "message_updated":
            return MessageUpdatedEvent(type="message_updated", revision=revision, id=id, message=row)
        case "user_message" | "text_delta" | "reasoning_delta" | "response_done":
            del row["text"]
            return _text(event, message, row)
        case _:
            assert_never(event.name)


def _turn(event: MessageChanged, message: MessageSnapshot, row: Json) -> TurnStartEvent | TurnDoneEvent:
    turn_id, timestamp = message.turn_id, message.timestamp
    if event.name == "turn_start":
        return TurnStartEvent(
            type="turn_start", revision=event.revision, id=event.id, turn_id=turn_id, timestamp=timestamp, row=row
        )
    return TurnDoneEvent(
        type="turn_done",
        revision=event.revision,
        id=event.id,
        turn_id=turn_id,
        timestamp=timestamp,
        duration_seconds=message.duration_seconds,
        row=row,
    )


def _text(event: MessageChanged, message: MessageSnapshot, row: Json) -> MessageEvent:
    if event.name == "user_message":
        return UserMessageEvent(
            type="user_message",
            revision=event.revision,
            id=event.id,
            text=message.text,
            timestamp=message.timestamp,
            turn_id=message.turn_id,
            sender=message.sender,
            model=event.details.get("model", ""),
            row=row,
        )
    if event.name == "response_done":
        return ResponseDoneEvent(
            type="response_done",
            revision=event.revision,
            id=event.id,
            length=len(message.text),
            duration_ms=event.details["duration_ms"],
            usage=event.details["usage"],
            row=row,
        )
    return _first_delta(event, message, row)


def _first_delta(event: MessageChanged, message: MessageSnapshot, row: Json) -> TextDeltaEvent | ReasoningDeltaEvent:
    revision, id, text, timestamp, model = event.revision, event.id, message.text, message.timestamp, message.model
    if event.name == "reasoning_delta":
        return ReasoningDeltaEvent(
            type="reasoning_delta",
            revision=revision,
            id=id,
            offset=0,
            text=text,
            timestamp=timestamp,
            model=model,
            row=row,
        )
    return TextDeltaEvent(
        type="text_delta", revision=revision, id=id, offset=0, text=text, timestamp=timestamp, model=model, row=row
    )


def _tool(event: MessageChanged, message: MessageSnapshot, row: Json) -> ToolExecStartEvent | ToolExecEndEvent:
    tool = message.tool
    if event.name == "tool_exec_start":
        return ToolExecStartEvent(
            type="tool_exec_start",
            revision=event.revision,
            id=event.id,
            tool_call=ToolCall(id=tool.call_id, name=tool.name, arguments=tool.arguments) if tool else None,
            timestamp=message.timestamp,
            model=message.model,
            row=row,
        )
    return ToolExecEndEvent(
        type="tool_exec_end",
        revision=event.revision,
        id=event.id,
        tool_result=ToolResult(tool_call_id=tool.call_id, content=tool.result, is_error=tool.is_error)
        if tool
        else None,
        timestamp=tool.ended_at if tool else None,
        duration_ms=message.duration_ms,
        row=row,
    )


def _error(event: MessageChanged, message: MessageSnapshot, row: Json) -> ErrorEvent:
    failed = message.error
    return ErrorEvent(
        type="error",
        revision=event.revision,
        id=event.id,
        message=message.text,
        timestamp=message.timestamp,
        model=message.model,
        code=failed.code if failed else "",
        remedy=failed.remedy if failed else "retry",
        row=row,
    )


def _removal(event: MessageChanged) -> MessageRemovedEvent:
    """Return the frame for a message that was removed before it could be sent. The event of its removal follows."""
    return MessageRemovedEvent(type="message_removed", revision=event.revision, id=event.id)


def _status(event: StatusChanged) -> AgentStatusEvent:
    frame = AgentStatusEvent(type="agent_status", status=event.status)
    if event.tool_name:
        frame["tool_name"] = event.tool_name
    if event.activity:
        frame["activity"] = event.activity
    if event.activity == "retrying":
        frame["code"], frame["retry_in"] = event.code, event.retry_in
    return frame


def _usage(event: UsageChanged) -> TokenUsageEvent:
    return TokenUsageEvent(
        type="token_usage",
        context_used=event.context_used,
        context_window=event.context_window,
        context_percent=event.context_percent,
        session_total_tokens=event.session_total_tokens,
        model=event.model,
    )
