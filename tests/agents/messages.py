"""Messages for requests, as the tests of the vendors' request forms use them."""

from __future__ import annotations

from agents.messages import File, Message, Text, Thinking, ToolCall, ToolResult


def user(*parts: Text | File | ToolResult | str) -> Message:
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def model(*parts: Text | Thinking | ToolCall | str) -> Message:
    return Message("assistant", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def note(text: str) -> Message:
    return Message("system", (Text(text),))
