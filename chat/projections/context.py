"""The context: what the model is told, made from the rows alone (CTX-01, CTX-03, CTX-06)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from agents.messages import Message, Part, Text, Thinking, ToolCall, ToolResult
from agents.providers.arguments import still_says
from chat.models import ChatMessage, MessageStatus, MessageType, Speaker

INTERRUPTED = "[interrupted]"
TOOL_INTERRUPTED = "[Tool execution interrupted by user]"
TOOL_LOST = "[Tool execution interrupted: the server stopped while it ran; whether it took effect is not known]"
TOOL_NOT_BEGUN = "[Tool not run: the server stopped before it began]"
SEVERAL_SENDERS = (
    "Several people take part in this conversation. Each user message begins with the name of its sender in square "
    "brackets."
)
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
    speaking = [row for row in rows if _speaks(row)]
    if _begins_with_prompt(speaking):
        prompt = speaking[0].text
    parts = [prompt, SEVERAL_SENDERS if _several_senders(speaking) else ""]
    return "\n\n".join(part for part in parts if part)


def context(rows: Sequence[ChatMessage]) -> list[Message]:
    """Project the live rows, in sequence order, into the model's messages.

    Every tool call gets exactly one result, right after the message that made it; only calls of the last response
    that have not begun (`pending`) stay open, for the run that will carry them out.
    """
    speaking = [row for row in rows if _speaks(row)]
    named = _several_senders(speaking)
    groups = list(_groups(speaking[1:] if _begins_with_prompt(speaking) else speaking))
    seen: set[str] = set()
    messages: list[Message] = []
    for group in groups:
        match _speaker(group[0]):
            case Speaker.ASSISTANT:
                messages.extend(_response(group, seen, may_wait=group is groups[-1]))
            case Speaker.USER if group[0].text:
                messages.append(Message("user", (Text(_said(group[0], named)),)))
            case Speaker.SYSTEM if group[0].text:
                messages.append(Message("system", (Text(group[0].text),)))
    return messages


def _speaks(row: ChatMessage) -> bool:
    return row.include_in_context and row.type in (MessageType.TEXT, MessageType.REASONING, MessageType.TOOL_GROUP)


def _speaker(row: ChatMessage) -> Speaker:
    """Whose a row is; one that does not say is the assistant's."""
    if row.type == MessageType.TEXT and row.role in (Speaker.USER, Speaker.SYSTEM):
        return Speaker(row.role)
    return Speaker.ASSISTANT


def _begins_with_prompt(speaking: Sequence[ChatMessage]) -> bool:
    return bool(speaking) and _speaker(speaking[0]) == Speaker.SYSTEM


def _several_senders(speaking: Iterable[ChatMessage]) -> bool:
    """Whether more than one person speaks; rows without a user are told apart by the name alone."""
    said = [row for row in speaking if _speaker(row) == Speaker.USER]
    return len({row.user_id if row.user_id is not None else row.sender for row in said}) > 1


def _said(row: ChatMessage, named: bool) -> str:
    if not named:
        return row.text
    name = " ".join(row.sender.replace("[", "(").replace("]", ")").split()) or "User"
    return f"[{name}] {row.text}"


def _groups(rows: Sequence[ChatMessage]) -> Iterator[list[ChatMessage]]:
    """Split rows into single user and system texts and the runs of rows that one response made."""
    group: list[ChatMessage] = []
    for row in rows:
        if group and not _same_response(group[-1], row):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def _same_response(before: ChatMessage, row: ChatMessage) -> bool:
    if _speaker(before) != Speaker.ASSISTANT or _speaker(row) != Speaker.ASSISTANT:
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
    call_id = next(name for name in _call_ids(row) if name and name not in seen)
    seen.add(call_id)
    arguments = row.arguments if isinstance(row.arguments, dict) else {}
    raw = _strings(row.provider_data).get("raw_arguments", "")
    return ToolCall(call_id, row.tool_name or "unknown", arguments, raw if still_says(raw, arguments) else "")


def _call_ids(row: ChatMessage) -> Iterator[str]:
    """What a call may be named, best first: an id may be missing, or doubled by hand."""
    yield row.tool_call_id
    yield from (own_call_id(row.id) + "_" * more for more in count())


def own_call_id(message_id: str) -> str:
    """Name a call after its row."""
    return f"call_{message_id}"


def _result(row: ChatMessage, call_id: str) -> ToolResult:
    unfinished = row.status in (MessageStatus.PENDING, MessageStatus.RUNNING, MessageStatus.WAITING)
    if unfinished or (row.status == MessageStatus.INTERRUPTED and not row.result):
        return ToolResult(call_id, TOOL_INTERRUPTED, True)
    return ToolResult(call_id, row.result, row.is_error)


def _strings(data: object) -> dict[str, str]:
    if not isinstance(data, dict):
        return {}
    return {str(key): value for key, value in data.items() if isinstance(value, str)}
