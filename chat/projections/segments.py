"""Segments: the texts, reasoning and tool calls of the agent in each turn, in their order (CTX-05)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from chat.models import ChatMessage, MessageRole, MessageStatus, MessageType
from chat.projections.steps import AT_WORK


@dataclass(frozen=True, slots=True)
class WordsSegment:
    """A text or reasoning of the agent."""

    type: Literal["text", "reasoning"]
    content: str


@dataclass(frozen=True, slots=True)
class ToolSegment:
    """A tool call, with its `result` or `error` once it is done."""

    tool_call_id: str
    tool_name: str
    arguments: Any
    status: Literal["running", "success", "error"]
    result: str | None
    error: str | None
    type: Literal["tool"] = "tool"


Segment = WordsSegment | ToolSegment


@dataclass(frozen=True, slots=True)
class TurnSegments:
    """A turn, or a part of it if another turn's message interrupts it. `sequence` is that of its first row."""

    turn_id: str
    sequence: int
    segments: tuple[Segment, ...]


def segments(rows: Iterable[ChatMessage]) -> list[TurnSegments]:
    """Return the segments of a conversation's rows in sequence order: one segment for each row of the agent.

    Turns without rows of the agent are included. So are rows that the model no longer gets.
    """
    turns = groupby(rows, key=lambda row: row.turn_id)
    return [_turn(turn_id, list(rows_of_turn)) for turn_id, rows_of_turn in turns]


def _turn(turn_id: str, rows: list[ChatMessage]) -> TurnSegments:
    return TurnSegments(turn_id, rows[0].sequence or 0, tuple(_segments(rows)))


def _segments(rows: Iterable[ChatMessage]) -> Iterator[Segment]:
    for row in rows:
        match row.type:
            case MessageType.TEXT if row.role not in (MessageRole.USER, MessageRole.SYSTEM):
                yield WordsSegment("text", row.text)
            case MessageType.REASONING:
                yield WordsSegment("reasoning", row.text)
            case MessageType.TOOL_GROUP:
                yield _tool(row)


def _tool(row: ChatMessage) -> ToolSegment:
    status = _status(row)
    return ToolSegment(
        tool_call_id=row.tool_call_id,
        tool_name=row.tool_name or "unknown",
        arguments={} if row.arguments is None else row.arguments,
        status=status,
        result=row.result if status == "success" else None,
        error=row.result if status == "error" else None,
    )


def _status(row: ChatMessage) -> Literal["running", "success", "error"]:
    if row.status in AT_WORK:
        return "running"
    failed = row.is_error or row.status in (MessageStatus.FAILED, MessageStatus.INTERRUPTED)
    return "error" if failed else "success"
