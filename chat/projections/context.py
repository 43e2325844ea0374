"""The context: what the model is told, made from the rows alone (CTX-01, CTX-03, CTX-06)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise

from agents.messages import Message, Part, Text, Thinking, ToolCall, ToolResult
from chat.models import ChatMessage, MessageStatus, MessageType, Speaker

INTERRUPTED = "[interrupted]"
TOOL_INTERRUPTED = "[Tool execution interrupted by user]"
TOOL_LOST = "[Tool execution interrupted: the server stopped while it ran; whether it took effect is not known]"
SEVERAL_SENDERS = "Several people take part in this conversation. Each user message begins with the name of its sender in square brackets."
ASSISTANT_TYPES = (MessageType.TEXT, MessageType.REASONING, MessageType.TOOL_GROUP)
# The columns that the context is made of; nothing else is read for it.
CONTEXT_FIELDS = (
    "id",
    "sequence",
    "type",
    "role",
    "status",
    "text",
    "sender",
    "user_id",
    "provider",
    "response_id",
    "include_in_context",
    "tool_call_id",
    "tool_name",
    "arguments",
    "result",
    "is_error",
    "provider_data",
)


def system_prompt(rows: Sequence[ChatMessage], prompt: str) -> str:
    """Put the system prompt together: a system row before all others stands for the session's own (CTX-04)."""
    first = next((row for row in rows if row.include_in_context and row.type == MessageType.TEXT), None)
    if first is not None and first.role == Speaker.SYSTEM:
        prompt = first.text
    parts = [prompt, SEVERAL_SENDERS if _several_senders(rows) else ""]
    return "\n\n".join(part for part in parts if part)


def context(rows: Sequence[ChatMessage]) -> list[Message]:
    """Project the live rows, in sequence order, into the model's messages.

    Every tool call gets exactly one result, right after the message that made it; only calls of the last response
    that have not begun (`pending`) stay open, for the run that will carry them out.
    """
    named = _several_senders(rows)
    groups = list(_groups([row for row in rows if row.include_in_context and _speaks(row)]))
    if groups and _is_prompt(groups[0][0]):
        groups = groups[1:]
    seen: set[str] = set()
    messages: list[Message] = []
    for group in groups:
        if group[0].role != Speaker.USER and group[0].role != Speaker.SYSTEM:
            messages.extend(_response(group, seen, may_wait=group is groups[-1]))
        elif group[0].text:
            messages.append(
                Message("user" if group[0].role == Speaker.USER else "system", (Text(_said(group[0], named)),))
            )
    return messages


def _speaks(row: ChatMessage) -> bool:
    return row.type in ASSISTANT_TYPES


def _is_prompt(row: ChatMessage) -> bool:
    return row.type == MessageType.TEXT and row.role == Speaker.SYSTEM


def _several_senders(rows: Iterable[ChatMessage]) -> bool:
    senders = {
        (row.user_id, row.sender)
        for row in rows
        if row.type == MessageType.TEXT and row.role == Speaker.USER and row.include_in_context
    }
    return len({user_id if user_id is not None else sender for user_id, sender in senders}) > 1


def _said(row: ChatMessage, named: bool) -> str:
    if not named or row.role != Speaker.USER:
        return row.text
    name = " ".join(row.sender.replace("[", "(").replace("]", ")").split()) or "User"
    return f"[{name}] {row.text}"


def _groups(rows: Sequence[ChatMessage]) -> Iterable[list[ChatMessage]]:
    """Split rows into single user and system texts and the runs of rows that one response made."""
    group: list[ChatMessage] = rows[:1] if isinstance(rows, list) else list(rows[:1])
    for before, row in pairwise(rows):
        if _same_response(before, row):
            group.append(row)
        else:
            yield group
            group = [row]
    if group:
        yield group


def _same_response(before: ChatMessage, row: ChatMessage) -> bool:
    if Speaker.USER in (before.role, row.role) or Speaker.SYSTEM in (before.role, row.role):
        return False
    if before.response_id != row.response_id:
        return False
    # Rows without a response (hand-written): calls belong to the text before them, a text begins anew.
    return bool(row.response_id) or row.type == MessageType.TOOL_GROUP


def _response(group: list[ChatMessage], seen: set[str], *, may_wait: bool) -> list[Message]:
    parts: list[Part] = []
    results: list[Part] = []
    for row in group:
        if row.type == MessageType.REASONING:
            parts.append(Thinking(row.text, row.provider, _strings(row.provider_data)))
        elif row.type == MessageType.TEXT:
            parts.extend(_spoken(row))
        else:
            call = _call(row, seen)
            parts.append(call)
            if not (may_wait and row.status == MessageStatus.PENDING):
                results.append(_result(row, call.id))
    if not any(isinstance(part, Text | ToolCall) for part in parts):
        return []  # reasoning that led nowhere: no provider takes it back alone
    messages = [Message("assistant", tuple(parts))]
    if results:
        messages.append(Message("user", tuple(results)))
    return messages


def _spoken(row: ChatMessage) -> list[Part]:
    text = row.text
    if row.status == MessageStatus.INTERRUPTED:
        text = f"{text}\n\n{INTERRUPTED}" if text else INTERRUPTED
    return [Text(text)] if text else []


def _call(row: ChatMessage, seen: set[str]) -> ToolCall:
    call_id = row.tool_call_id or f"call_{row.id}"
    if call_id in seen:
        call_id = f"call_{row.id}"
    seen.add(call_id)
    arguments = row.arguments if isinstance(row.arguments, dict) else {}
    raw = _strings(row.provider_data).get("raw_arguments", "")
    return ToolCall(call_id, row.tool_name or "unknown", arguments, raw if _says(raw, arguments) else "")


def _says(raw: str, arguments: object) -> bool:
    """Whether the model's own text still says what the row says: an edit of the row wins."""
    try:
        return bool(raw) and json.loads(raw) == arguments
    except ValueError:
        return arguments == {"_raw": raw}


def _result(row: ChatMessage, call_id: str) -> ToolResult:
    unfinished = row.status in (MessageStatus.PENDING, MessageStatus.RUNNING, MessageStatus.WAITING)
    if unfinished or (row.status == MessageStatus.INTERRUPTED and not row.result):
        return ToolResult(call_id, TOOL_INTERRUPTED, True)
    return ToolResult(call_id, row.result, row.is_error)


def _strings(data: object) -> dict[str, str]:
    if not isinstance(data, dict):
        return {}
    return {str(key): value for key, value in data.items() if isinstance(value, str)}
