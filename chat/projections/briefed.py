"""A context for people to look at: each message as the model gets it, with the rows that it is made of, and why others
are not in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby

from agents.messages import Part, Role, Text, Thinking, ToolResult
from chat.models import UNFINISHED, ChatMessage, MessageType
from chat.projections.context import NOTHING_SHOWN, Told, speaks, told
from chat.projections.estimate import AROUND, of_part

# A vendor's adapter sends reasoning with one of these back to the model that made it (MSG-08).
GIVEN_BACK = ("signature", "redacted", "item")
# This kind is given back while the turn lasts in which it was made.
GIVEN_BACK_AT_ONCE = "field"
MARKERS = (MessageType.TURN_START, MessageType.TURN_DONE)

# A message of the context, and whether nobody has said anything since.
Recent = tuple[Told, bool]


class Why(StrEnum):
    """Why the model does not get a row: somebody has left it out, an error is for people, reasoning has led nowhere or
    goes back to its maker alone, there are no words, it is the system prompt, or the agent is still at work on it."""

    SENT = ""
    LEFT_OUT = "left_out"
    ERROR = "error"
    LED_NOWHERE = "led_nowhere"
    NOT_GIVEN_BACK = "not_given_back"
    EMPTY = "empty"
    PROMPT = "prompt"
    AT_WORK = "at_work"


@dataclass(frozen=True, slots=True)
class Line:
    """What a message holds of one row; `parts` is empty where that is nothing. `tokens` are estimated."""

    row: ChatMessage
    parts: tuple[Part, ...] = ()
    why: Why = Why.SENT
    is_result: bool = False
    tokens: float = 0.0


@dataclass(slots=True)
class Block:
    """A message of the context; `role` is None for a row between two messages of which the model gets nothing."""

    role: Role | None
    lines: list[Line] = field(default_factory=list)

    @property
    def is_results(self) -> bool:
        return any(line.is_result for line in self.lines)

    @property
    def tokens(self) -> float:
        return sum(line.tokens for line in self.lines) + (AROUND if self.role else 0)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The message's own parts, in order."""
        return tuple(part for line in self.lines for part in line.parts)


def blocks(
    rows: Sequence[ChatMessage],
    shown: Mapping[str, tuple[Part, ...]] = NOTHING_SHOWN,
    provider: str = "",
    model: str = "",
) -> list[Block]:
    """Lay out the context of live rows for a provider's model. Markers of turns, which say nothing, are left away.

    Without a `model` it is taken to be the one that made each reasoning. The blocks that have a role are the messages
    of `context`, part by part.
    """
    messages = told(rows, shown)
    asked = _last_words(messages)
    opening: dict[str, list[Recent]] = {}
    first = ""
    for place, each in enumerate(messages):
        first = first if each.message.tool_results else each.sources[0].pk
        opening.setdefault(first, []).append((each, place > asked))
    laid = _Layout((provider, model))
    for row in rows:
        if row.type not in MARKERS:
            laid.add(row, opening.get(row.pk, ()))
    return laid.end()


@dataclass(slots=True)
class _Layout:
    """The blocks so far. `open` is the message in whose midst we are, `due` its lines by row, `until` its last place;
    `after` are the results that follow it."""

    asked: tuple[str, str]
    made: list[Block] = field(default_factory=list)
    open: Block | None = None
    due: dict[str, Line] = field(default_factory=dict)
    until: int = 0
    after: list[Block] = field(default_factory=list)
    has_spoken: bool = False

    def add(self, row: ChatMessage, begins: Sequence[Recent]) -> None:
        if begins:
            self._begin(begins)
        line = self.due.pop(row.pk, None) or Line(row, why=self._why_not(row))
        self.has_spoken = self.has_spoken or speaks(row)
        if self.open is not None and (row.sequence or 0) <= self.until:
            self.open.lines.append(line)
            return
        self._close()
        self.made.append(Block(None, [line]))

    def end(self) -> list[Block]:
        self._close()
        return self.made

    def _begin(self, begins: Sequence[Recent]) -> None:
        self._close()
        (first, is_recent), *others = begins
        self.open = Block(first.message.role)
        self.made.append(self.open)
        self.due = {line.row.pk: line for line in _lines(first, self.asked, is_recent)}
        self.until = first.sources[-1].sequence or 0
        self.after = [Block(each.message.role, _lines(each, self.asked, recent)) for each, recent in others]

    def _close(self) -> None:
        self.made.extend(self.after)
        self.open, self.after = None, []

    def _why_not(self, row: ChatMessage) -> Why:
        if row.type == MessageType.ERROR:
            return Why.ERROR
        if not row.include_in_context:
            return Why.LEFT_OUT
        if row.status in UNFINISHED:
            return Why.AT_WORK
        if row.type == MessageType.REASONING:
            return Why.LED_NOWHERE
        return Why.PROMPT if row.role == "system" and not self.has_spoken else Why.EMPTY


def _lines(each: Told, asked: tuple[str, str], is_recent: bool) -> list[Line]:
    pieces = groupby(zip(each.message.parts, each.sources, strict=True), key=lambda piece: piece[1].pk)
    return [_line([*of_row], asked, is_recent) for _pk, of_row in pieces]


def _line(pieces: Sequence[tuple[Part, ChatMessage]], asked: tuple[str, str], is_recent: bool) -> Line:
    parts, row = tuple(part for part, _row in pieces), pieces[0][1]
    is_result = isinstance(parts[0], ToolResult)
    why = _why(row, parts[0], asked, is_recent)
    tokens = 0.0 if why in (Why.NOT_GIVEN_BACK, Why.AT_WORK) else sum(map(of_part, parts))
    return Line(row, parts, why, is_result, tokens)


def _why(row: ChatMessage, part: Part, asked: tuple[str, str], is_recent: bool) -> Why:
    if row.status in UNFINISHED:
        return Why.AT_WORK
    if not isinstance(part, Thinking):
        return Why.SENT
    provider, model = asked
    is_own = any(name in part.data for name in GIVEN_BACK) and part.is_of(provider, model or part.model)
    at_once = GIVEN_BACK_AT_ONCE in part.data and is_recent and part.provider == provider
    return Why.SENT if is_own or at_once else Why.NOT_GIVEN_BACK


def _last_words(messages: Sequence[Told]) -> int:
    """Where somebody spoke last."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place].message
        if message.role == "user" and any(isinstance(part, Text) for part in message.parts):
            return place
    return -1
