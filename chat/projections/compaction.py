"""The choice of the rows that a summary replaces, and the text from which a model writes it. Pure (CTX-07)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agents.messages import File, Message, Part, Text, Thinking, ToolCall, ToolResult
from agents.safe_text import cut
from chat.models import TURN_MARKERS, ChatMessage, MessageRole, MessageType
from chat.projections.context import SourcedMessage, is_in_context, is_summary, prompt_row, speaker, with_sources
from chat.projections.estimate import of_part, of_text

# The most turns at the end that are not summarized, and the share of the context window that they may fill.
MAX_KEPT = 2
KEPT_SHARE = 0.25
# The window, in tokens, that is assumed for a model whose window is unknown.
UNKNOWN_WINDOW = 32_000
# The share of the window that one request for a summary may fill with the conversation.
PIECE_SHARE = 0.5
# The most characters of one tool result, of the arguments of a call, and of one text. Longer texts are cut at the end.
MAX_RESULT_LENGTH = 3_000
MAX_ARGUMENTS_LENGTH = 1_000
MAX_TEXT_LENGTH = 24_000
# The beginning of a message in a piece, and the text between two messages.
HEADING = "## "
BETWEEN = "\n\n"
BORDER = BETWEEN + HEADING


@dataclass(frozen=True, slots=True)
class Compaction:
    """The rows that a summary is to replace. It is inserted after the row `after`.

    `messages` is the number of messages that it summarizes. `kept` are the rows after it, in order.
    """

    rows: Sequence[ChatMessage]
    after: ChatMessage
    messages: int
    kept: Sequence[ChatMessage]


def plan(rows: Sequence[ChatMessage], window: int | None) -> Compaction | None:
    """Choose whole turns to summarize. `rows` are the live rows of a conversation from its last summary on, in order.

    The last turns are kept if they fit. The last turn is always kept if the model has not answered it. Return None if
    there is nothing to summarize.
    """
    own = prompt_row(rows)
    starts = [place for place in range(1, len(rows)) if _begins_turn(rows, place)]
    ends = starts[-MAX_KEPT:] if _is_unanswered(rows) else [*starts[-MAX_KEPT:], len(rows)]
    room = (window or UNKNOWN_WINDOW) * KEPT_SHARE
    for place in ends:
        older, kept = rows[:place], rows[place:]
        is_new = any(is_in_context(row) and not is_summary(row) and row is not own for row in older)
        if is_new and (place == ends[-1] or _tokens(kept) <= room):
            return Compaction(older, older[-1], _count(older, own), kept)
    return None


def pieces(rows: Sequence[ChatMessage], window: int | None) -> list[str]:
    """Return the conversation of these rows as text, in pieces that fit a request for a summary, of whole messages."""
    room = (window or UNKNOWN_WINDOW) * PIECE_SHARE
    found, piece, size = list[str](), list[str](), 0.0
    for text in _lines(rows):
        tokens = of_text(text)
        if piece and size + tokens > room:
            found.append(BETWEEN.join(piece))
            piece, size = [], 0.0
        piece.append(text)
        size += tokens
    return [*found, BETWEEN.join(piece)] if piece else found


def halved(texts: Iterable[str], longest: int) -> list[str]:
    """Return the pieces with those of more than `longest` characters cut in two, between messages if possible."""
    return [part for text in texts for part in (_halves(text) if len(text) > longest else [text])]


def _halves(piece: str) -> list[str]:
    middle, quarter = len(piece) // 2, len(piece) // 4
    borders = (piece.rfind(BORDER, quarter, middle), piece.find(BORDER, middle, len(piece) - quarter))
    place = min((border for border in borders if border >= 0), key=lambda border: abs(border - middle), default=middle)
    return [piece[:place], piece[place:].lstrip("\n")]


def _is_unanswered(rows: Sequence[ChatMessage]) -> bool:
    """Return whether the last turn has no answer, because the model failed or was stopped before its first word."""
    last = next((row for row in reversed(rows) if row.type not in TURN_MARKERS), None)
    if last is None or last.summarises is not None:
        return False
    return last.type == MessageType.ERROR or speaker(last) == MessageRole.USER


def _begins_turn(rows: Sequence[ChatMessage], place: int) -> bool:
    """Return whether a turn begins at this row. Among rows without turns, which users added, it is a user's text."""
    row, before = rows[place], rows[place - 1]
    if row.turn_id or before.turn_id:
        return row.turn_id != before.turn_id
    return row.type == MessageType.TEXT and speaker(row) == MessageRole.USER


def _tokens(rows: Sequence[ChatMessage]) -> float:
    return sum(of_part(part) for each in with_sources(rows) for part in each.message.parts)


def _count(rows: Sequence[ChatMessage], own: ChatMessage | None) -> int:
    """Return the number of messages that a summary replaces, including those that an earlier summary replaced."""
    shown = [row for row in rows if row.type not in TURN_MARKERS and row is not own]
    return sum(row.summarises if row.summarises is not None and is_summary(row) else 1 for row in shown)


def _lines(rows: Sequence[ChatMessage]) -> Iterator[str]:
    names = {
        part.id: part.name for each in with_sources(rows) for part in each.message.parts if isinstance(part, ToolCall)
    }
    for each in with_sources(rows):
        texts = [text for part in each.message.parts if (text := _part_text(part, names))]
        if texts:
            yield "\n".join([f"{HEADING}{_heading(each)}", *texts])


def _heading(each: SourcedMessage) -> str:
    message: Message = each.message
    if each.sources[0].summarises is not None:
        return "Earlier summary"
    if message.tool_results:
        return "Tool results"
    if message.role == "user":
        return f"User ({each.sources[0].sender})" if each.sources[0].sender else "User"
    return {"assistant": "Assistant", "system": "Note"}[message.role]


def _part_text(part: Part, names: Mapping[str, str]) -> str:
    match part:
        case Text(text):
            return cut(text, MAX_TEXT_LENGTH)
        case ToolCall(_, name, arguments):
            return f"[calls {name} with {cut(json.dumps(arguments, ensure_ascii=False), MAX_ARGUMENTS_LENGTH)}]"
        case ToolResult(call_id, content, is_error):
            kind = "error" if is_error else "result"
            return f"[{kind} of {names.get(call_id, 'a tool')}]\n{cut(content, MAX_RESULT_LENGTH)}"
        case File(name=name):
            return f"[file {name}]"
        case Thinking():
            return ""
