"""The context of a model request for the context panel, with an excerpt of each text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agents.messages import File, Part, Text, Thinking, ToolCall, ToolResult
from chat.models import ChatMessage, MessageRevision, MessageStatus
from chat.projections.context_view import Block, ExclusionReason, Line

# The characters of an excerpt, and of the longer text that opens below it.
LENGTH = 180
WHOLE = 2_000
Tokens = Callable[[float], int]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The beginning of a text in one paragraph.

    `whole` is a longer part of the text, or "" if the excerpt is the complete text. `beyond` is the number of
    characters after `whole`.
    """

    excerpt: str
    whole: str = ""
    beyond: int = 0

    @classmethod
    def of(cls, text: str) -> Excerpt:
        flat = " ".join(text[: 4 * LENGTH].split())
        if flat == text and len(text) <= LENGTH:
            return cls(text)
        excerpt = flat if len(flat) <= LENGTH and len(text) <= 4 * LENGTH else f"{flat[:LENGTH].rstrip()}…"
        return cls(excerpt, text[:WHOLE], max(0, len(text) - WHOLE))


@dataclass(frozen=True, slots=True)
class LineView:
    """The part of a message that comes from one row.

    `by` is the revision that excluded the row. `since` is what happened to the row after the request.
    """

    id: str
    kind: str
    name: str
    words: Excerpt
    files: tuple[str, ...]
    tokens: int
    why: str
    is_cut: bool
    is_error: bool
    is_included: bool
    is_switch: bool
    by: MessageRevision | None = None
    since: str = ""
    now: Excerpt | None = None
    edited_by: str = ""


@dataclass(frozen=True, slots=True)
class BlockView:
    """A message of the request, or rows that are not sent. `role` is "results" for tool results, "" for unsent rows."""

    role: str
    name: str
    tokens: int
    lines: tuple[LineView, ...]


def block_view(
    block: Block, tokens: Tokens, exclusions: Mapping[str, MessageRevision], *, may_switch: bool = True
) -> BlockView:
    """Return the view of a block. `tokens` rounds an estimate of tokens."""
    lines = tuple(_line(line, tokens, exclusions, may_switch=may_switch) for line in block.lines)
    role = "results" if block.is_results else block.role or ""
    first = block.lines[0].row
    name = {"user": first.sender, "assistant": first.model}.get(role, "")
    return BlockView(role, name, tokens(block.tokens) if role else 0, lines)


def _line(line: Line, tokens: Tokens, exclusions: Mapping[str, MessageRevision], *, may_switch: bool) -> LineView:
    row = line.row
    is_call = row.type == "tool_group"
    parts = line.parts or _unsent_parts(row)
    return LineView(
        id=row.pk,
        kind=row.type if not is_call else "result" if line.is_result else "call",
        name=(row.tool_name or "unknown") if is_call else "",
        words=Excerpt.of(_joined_text(parts) if line.why != ExclusionReason.AT_WORK or not line.is_result else ""),
        files=tuple(part.name for part in parts if isinstance(part, File)),
        tokens=tokens(line.tokens),
        why=line.why.value,
        is_cut=row.status == MessageStatus.INTERRUPTED and row.type == "text",
        is_error=row.is_error and line.is_result,
        is_included=row.include_in_context,
        is_switch=may_switch and line.why != ExclusionReason.ERROR and not line.is_result,
        by=exclusions.get(row.pk) if line.why == ExclusionReason.LEFT_OUT else None,
        edited_by="" if line.is_result else row.edited_by_name,
    )


def _unsent_parts(row: ChatMessage) -> Sequence[Part]:
    """Return the parts of a row that is not sent to the model."""
    if row.type == "tool_group":
        return (ToolCall("", row.tool_name, row.arguments if isinstance(row.arguments, dict) else {}),)
    return (Text(row.text),)


def text_of_row(row: ChatMessage, *, is_result: bool) -> str:
    """Return the text of a row: the arguments of a tool call or, with `is_result`, its result."""
    return row.result if is_result else _joined_text(_unsent_parts(row))


def _joined_text(parts: Sequence[Part]) -> str:
    return "\n\n".join(filter(None, map(text_of, parts)))


def text_of(part: Part) -> str:
    """Return the text of a part, or "" for a file."""
    match part:
        case Text(text) | Thinking(text):
            return text
        case ToolCall(_, _name, arguments, raw):
            return raw or json.dumps(arguments, ensure_ascii=False)
        case ToolResult(_, content):
            return content
        case File():
            return ""
