"""The JSON face of the live stream: ChatEvents as clients of /ws/sessions/<id>/ get them (RUN-02, docs/protocol.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, assert_never

from chat.events import (
    AccessChanged,
    ChatEvent,
    ContextChanged,
    MessageChanged,
    MessageRemoved,
    MessagesShifted,
    RunCancelled,
    SessionChanged,
    StatusChanged,
    TextAppended,
    UsageChanged,
)
from chat.services.reading import Changes
from chat.snapshots import MessageSnapshot, SessionSnapshot

Json = dict[str, Any]
# What one frame of an answer to `sync` holds: so many messages, and so many characters if they are more than one.
MOST_MESSAGES = 200
MOST_CHARS = 200_000


def dump(frame: Json) -> str:
    """Write a frame as it is sent, on either face."""
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":"))


def event_frame(event: ChatEvent, message: MessageSnapshot | None, session: SessionSnapshot | None) -> Json | None:
    """Give an event its wire form; `message` and `session` are what it speaks of. None: it is not for clients."""
    match event:
        case MessageChanged():
            return _message(event, message) if message else _gone(event)
        case MessageRemoved(revision, message_id):
            return {"type": "message_removed", "revision": revision, "id": message_id}
        case MessagesShifted(revision, start, by):
            return {"type": "messages_shifted", "revision": revision, "from": start, "by": by}
        case ContextChanged(revision, included, places):
            return {"type": "context_changed", "revision": revision, "included": included, "places": places}
        case SessionChanged(revision):
            return {"type": "session_updated", "revision": revision, "session": session.to_json() if session else None}
        case TextAppended():
            return text_frame(event)
        case StatusChanged(status, tool_name):
            tool = {"tool_name": tool_name} if tool_name else {}
            return {"type": "agent_status", "status": status, **tool}
        case UsageChanged():
            return _usage(event)
        case RunCancelled(turn_id):
            return {"type": "agent_cancelled", "turn_id": turn_id}
        case AccessChanged():
            return None
        case _:
            assert_never(event)


def text_frame(event: TextAppended) -> Json:
    kind = "reasoning_delta" if event.reasoning else "text_delta"
    return {"type": kind, "id": event.id, "offset": event.offset, "text": event.text}


def rest_frame(message: MessageSnapshot, text: str) -> Json:
    """Make the frame that adds to a message what its text has grown by since its row was read."""
    offset = len(message.text)
    return text_frame(TextAppended(message.id, offset, text[offset:], message.type == "reasoning"))


def changes_frames(changes: Changes, since: int, have: dict[str, int], *, anew: bool = False) -> list[Json]:
    """Answer `sync`: frames with some messages each, counted by `part`; the last one (`more` false) makes the
    client's revision.

    Of a streaming message that the client `have`s some of, only the rest is sent: `text` from `offset` on, which
    replaces what the client has from there. `anew`: this is all, and what the client has is of another history.
    """
    parts = list(_parts([_rest(message, have.get(message.id, 0)) for message in changes.messages])) or [[]]
    head = {"type": "changes", "since": since, "revision": changes.revision, "anew": anew}
    frames = [
        {**head, "part": number, "more": True, "messages": part, "removed": [], "session": None}
        for number, part in enumerate(parts)
    ]
    frames[-1].update(more=False, removed=changes.removed, session=changes.session.to_json())
    return frames


def _rest(message: MessageSnapshot, have: int) -> Json:
    known = min(max(0, have), len(message.text)) if message.status == "streaming" else 0
    return {**message.to_json(), "offset": known, "text": message.text[known:]}


def _parts(messages: Iterable[Json]) -> Iterator[list[Json]]:
    part: list[Json] = []
    room = MOST_CHARS
    for message in messages:
        size = len(message["text"]) + (len(message["tool"]["result"]) if message["tool"] else 0)
        if part and (size > room or len(part) == MOST_MESSAGES):
            yield part
            part, room = [], MOST_CHARS
        part.append(message)
        room -= size
    if part:
        yield part


def _message(event: MessageChanged, message: MessageSnapshot) -> Json:
    """The event's own fields, and beside them the `row`, so that a client can keep it whole.

    response_done has no text but its `length`: a client that has less has lost the last words, and asks for them.
    """
    fields = {"type": event.name, "revision": event.revision, "id": event.id, **_named(event, message), **event.details}
    if event.name == "message_updated":
        return {**fields, "message": message.to_json()}
    row = message.to_json()
    if event.name == "response_done" or "text" in fields:
        del row["text"]
    return {**fields, "row": row}


def _named(event: MessageChanged, message: MessageSnapshot) -> Json:
    tool = message.tool
    match event.name:
        case "turn_start":
            return {"turn_id": message.turn_id, "timestamp": message.timestamp}
        case "turn_done":
            seconds = message.duration_seconds
            return {"turn_id": message.turn_id, "timestamp": message.timestamp, "duration_seconds": seconds}
        case "user_message":
            said = {"text": message.text, "timestamp": message.timestamp}
            return {**said, "turn_id": message.turn_id, "sender": message.sender}
        case "text_delta" | "reasoning_delta":
            return {"offset": 0, "text": message.text, "timestamp": message.timestamp, "model": message.model}
        case "tool_exec_start":
            call = {"id": tool.call_id, "name": tool.name, "arguments": tool.arguments} if tool else None
            return {"tool_call": call, "timestamp": message.timestamp, "model": message.model}
        case "tool_exec_end":
            result = {"tool_call_id": tool.call_id, "content": tool.result, "is_error": tool.is_error} if tool else None
            ended = tool.ended_at if tool else None
            return {"tool_result": result, "timestamp": ended, "duration_ms": message.duration_ms}
        case "error":
            named = {"message": message.text, "timestamp": message.timestamp, "model": message.model}
            return {**named, "code": message.error.code, "remedy": message.error.remedy} if message.error else named
        case "response_done":
            return {"length": len(message.text)}
        case "message_updated":
            return {}
        case _:
            assert_never(event.name)


def _gone(event: MessageChanged) -> Json:
    """A message that was removed before it could be told of: its removal follows."""
    return {"type": "message_removed", "revision": event.revision, "id": event.id}


def _usage(event: UsageChanged) -> Json:
    return {
        "type": "token_usage",
        "context_used": event.context_used,
        "context_window": event.context_window,
        "context_percent": event.context_percent,
        "session_total_tokens": event.session_total_tokens,
        "model": event.model,
    }
