"""The context as users inspect it: the model's messages with their rows, and the reasons why rows are excluded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby

from agents.messages import Message, Part, Role, Thinking, ToolResult
from chat.models import TURN_MARKERS, UNFINISHED, ChatMessage, MessageType
from chat.projections.context import (
    NOTHING_AROUND,
    NOTHING_SHOWN,
    Around,
    SourcedMessage,
    from_summary,
    is_in_context,
    with_sources,
)
from chat.projections.estimate import AROUND, of_part

# Returns the reasoning that a request for these messages contains, as the same objects that are their parts (MSG-08).
SentReasoning = Callable[[Sequence[Message]], Iterable[Thinking]]


class ExclusionReason(StrEnum):
    """The reason why the model does not get a row.

    In this order: the model gets it; a user excluded it; it is an error; it is reasoning without a text or call; it is
    reasoning that is not sent, such as another model's; it is empty; it is the system prompt; it is unfinished.
    """

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
    """The parts of a message that come from one row, perhaps none. `tokens` is an estimate."""

    row: ChatMessage
    parts: tuple[Part, ...] = ()
    why: ExclusionReason = ExclusionReason.SENT
    is_result: bool = False
    tokens: float = 0.0


@dataclass(slots=True)
class Block:
    """A message of the context. If `role` is None, it is a row that the model does not get."""

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
    sent_reasoning: SentReasoning = lambda _messages: (),
    around: Around = NOTHING_AROUND,
) -> list[Block]:
    """Return the context of live rows as blocks, from the last summary on, without markers of turns.

    `sent_reasoning` returns the reasoning that the vendor's request contains; without it, no reasoning counts as sent.
    The blocks with a role are the messages of `context`, part by part. `around` is as in `with_sources`.
    """
    rows = from_summary(rows)
    messages = with_sources(rows, shown, around)
    opening: dict[str, list[SourcedMessage]] = {}
    first = ""
    for each in messages:
        first = first if each.message.tool_results else each.sources[0].pk
        opening.setdefault(first, []).append(each)
    laid = _Layout(frozenset(map(id, sent_reasoning([each.message for each in messages]))))
    for row in rows:
        if row.type not in TURN_MARKERS:
            laid.add(row, opening.get(row.pk, ()))
    return laid.end()


@dataclass(slots=True)
class _Layout:
    """The blocks so far.

    `sent` are the Python ids of the reasoning parts that are sent. `open` is the message whose rows are being added,
    `due` its lines by row, and `until` the sequence of its last row. `after` are the results that follow it.
    """

    sent: frozenset[int]
    made: list[Block] = field(default_factory=list)
    open: Block | None = None
    due: dict[str, Line] = field(default_factory=dict)
    until: int = 0
    after: list[Block] = field(default_factory=list)
    has_content: bool = False

    def add(self, row: ChatMessage, begins: Sequence[SourcedMessage]) -> None:
        if begins:
            self._begin(begins)
        line = self.due.pop(row.pk, None) or Line(row, why=self._why_not(row))
        self.has_content = self.has_content or is_in_context(row)
        if self.open is not None and (row.sequence or 0) <= self.until:
            self.open.lines.append(line)
            return
        self._close()
        self.made.append(Block(None, [line]))

    def end(self) -> list[Block]:
        self._close()
        return self.made

    def _begin(self, begins: Sequence[SourcedMessage]) -> None:
        self._close()
        first, *others = begins
        self.open = Block(first.message.role)
        self.made.append(self.open)
        self.due = {line.row.pk: line for line in _lines(first, self.sent)}
        self.until = first.sources[-1].sequence or 0
        self.after = [Block(each.message.role, _lines(each, self.sent)) for each in others]

    def _close(self) -> None:
        self.made.extend(self.after)
        self.open, self.after = None, []

    def _why_not(self, row: ChatMessage) -> ExclusionReason:
        if row.type == MessageType.ERROR:
            return ExclusionReason.ERROR
        if not row.include_in_context:
            return ExclusionReason.LEFT_OUT
        if row.status in UNFINISHED:
            return ExclusionReason.AT_WORK
        if row.type == MessageType.REASONING:
            return ExclusionReason.LED_NOWHERE
        return ExclusionReason.PROMPT if row.role == "system" and not self.has_content else ExclusionReason.EMPTY


def _lines(each: SourcedMessage, sent: frozenset[int]) -> list[Line]:
    pieces = groupby(zip(each.message.parts, each.sources, strict=True), key=lambda piece: piece[1].pk)
    return [_line([*of_row], sent) for _pk, of_row in pieces]


def _line(pieces: Sequence[tuple[Part, ChatMessage]], sent: frozenset[int]) -> Line:
    parts, row = tuple(part for part, _row in pieces), pieces[0][1]
    is_result = isinstance(parts[0], ToolResult)
    why = ExclusionReason.SENT
    if row.status in UNFINISHED:
        why = ExclusionReason.AT_WORK
    elif isinstance(parts[0], Thinking) and id(parts[0]) not in sent:
        why = ExclusionReason.NOT_GIVEN_BACK
    tokens = 0.0 if why in (ExclusionReason.NOT_GIVEN_BACK, ExclusionReason.AT_WORK) else sum(map(of_part, parts))
    return Line(row, parts, why, is_result, tokens)
