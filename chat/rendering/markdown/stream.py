"""Draw Markdown while it is being written: finished blocks freeze, and only the unfinished tail is redrawn.

However a text is split into pieces, its frozen blocks at the end equal those of the finished text:

1. The text is normalized. Half of a line end or of a surrogate pair waits for the next piece.
2. The tail is parsed when one of its lines is settled: complete, or of a kind that more text cannot change. Then all
   top-level blocks except the last one freeze.
3. Frozen blocks share one set of link definitions. The tail is drawn with a copy of it.
4. A new definition redraws the frozen blocks that may use it, and those that changed are sent again.
5. At the end the tail freezes.

`tail.py` draws the tail.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token

from chat.rendering.budget import UNLIMITED, Allowance, BudgetExceeded, Expansions, Meter, end_of_markdown, most_output
from chat.rendering.markdown import parser
from chat.rendering.markdown.blocks import PlainText, draw_block, normalize, plain
from chat.rendering.markdown.code_blocks import CODE_START
from chat.rendering.markdown.footnotes import COUNT
from chat.rendering.markdown.highlight import MAX_SECONDS, MAX_SECONDS_OF_TEXT, Colored, Colors
from chat.rendering.markdown.parser import Drawing, References
from chat.rendering.markdown.tail import TailDrawing, end_line, open_fence, start_line


@dataclass(frozen=True)
class Append:
    """A block was frozen."""

    html: str


@dataclass(frozen=True)
class Replace:
    """A frozen block was drawn again: a link in it was defined later, or the block was drawn elsewhere."""

    index: int
    html: str


Op = Append | Replace
_PLAIN_CODE = re.compile(f"{re.escape(CODE_START)}[^<]*</code>")


class MarkdownStream:
    """The blocks of a growing text.

    `start` begins a frame, in which text is fed and the tail drawn within an allowance of CPU seconds. A finished block
    that exceeds the allowance is shown as source until the caller has drawn it elsewhere (`provisional`, `complete`).
    If the tail exceeds it, drawing stops: the tail and all later text are shown as source. `is_exact` is True if the
    blocks equal those of the finished text. Otherwise the caller must draw the finished text elsewhere.
    """

    def __init__(self, allowance: Allowance = UNLIMITED) -> None:
        self._seconds = allowance.seconds
        self._meter = Meter()
        self._frozen = _Frozen(self._meter, allowance)
        self._tail = _Tail(self._frozen.references, self._meter)
        # The safe HTML of each frozen block, and the source of those that must be drawn elsewhere, by index.
        self.blocks = self._frozen.html
        self.provisional = self._frozen.provisional
        self._held = ""
        self._length = 0
        self._plain: PlainText | None = None
        self._was_stopped = False

    @property
    def is_exact(self) -> bool:
        return not self._was_stopped and self._frozen.is_exact

    def complete(self, index: int, html: str) -> Op:
        """Replace a provisional block with HTML that was drawn elsewhere."""
        return self._frozen.complete(index, html)

    def start(self, now: float, seconds: float | None = None) -> None:
        """Begin a frame at the thread's CPU time `now`. `seconds` of CPU time replace the allowance."""
        self._meter.start(self._seconds if seconds is None else seconds, now)

    def feed(self, delta: str) -> list[Op]:
        """Add text, and return the blocks that were frozen or replaced."""
        text = self._held + delta
        self._held = text[-1] if text and (text[-1] == "\r" or "\ud800" <= text[-1] <= "\udbff") else ""
        return self._feed(normalize(text[: len(text) - len(self._held)]))

    def finish(self) -> list[Op]:
        """Freeze the tail, because the text is complete. Return the blocks that were frozen or replaced."""
        ops = self._feed(normalize(self._held))
        if self._plain is None:
            ops += self._freeze("", is_end=True)
        if self._plain is not None:
            ops += self._frozen.append(self._plain.end())
        return ops

    def tail_html(self) -> str:
        """Return the safe HTML of the text that is not frozen. Code in it has no colors."""
        if self._plain is None:
            try:
                return self._tail.html()
            except BudgetExceeded:
                self._stop(self._tail.source)
        return self._plain.html() if self._plain is not None else ""

    def _feed(self, text: str) -> list[Op]:
        if self._plain is not None:
            return self._frozen.append(self._plain.add(text))
        end = end_of_markdown(text, self._length)
        self._length += len(text)
        if end is None:
            return self._freeze(text)
        ops = self._freeze(text[:end], is_end=True)
        if self._plain is None:
            self._plain = PlainText()
        return ops + self._frozen.append(self._plain.add(text[end:]))

    def _freeze(self, text: str, *, is_end: bool = False) -> list[Op]:
        slices, is_over_budget = list[str](), False
        try:
            slices += self._tail.add(text)
            if is_end:
                slices += self._tail.rest()
        except BudgetExceeded:
            is_over_budget = True
        if not (slices or is_over_budget):
            return []
        ops, rest = self._frozen.add(slices)
        if is_over_budget or rest:
            self._stop("".join(rest) + self._tail.source)
        return ops

    def _stop(self, source: str) -> None:
        """Show the source that is not frozen as plain text. The next call returns its complete blocks."""
        self._was_stopped = True
        self._plain = PlainText(source)


class _Block(NamedTuple):
    """A parsed block. `colored` is the highlighted code before it. `labels` is its inline text that has brackets."""

    tokens: Sequence[Token]
    lines: Sequence[str]
    colored: Colored
    labels: str


class _Frozen:
    """Frozen blocks and their link definitions. A block changes only if a later definition matches its brackets."""

    def __init__(self, meter: Meter, allowance: Allowance) -> None:
        self.html: list[str] = []
        self.references: References = {}
        self.provisional: dict[int, str] = {}
        self._meter = meter
        self._allowance = allowance
        self._expansions = Expansions(strict=True)
        self._colored = Colored()
        self._length = self._output = 0
        self._with_brackets: dict[int, _Block] = {}
        self._lacks_definitions = self._lacks_colors = self._has_too_much_code = False
        self._num_codes_elsewhere = 0

    @property
    def is_exact(self) -> bool:
        return (
            not self.provisional
            and not (self._lacks_definitions and self.references)
            and not (self._num_codes_elsewhere and self._may_have_other_colors)
        )

    @property
    def _may_have_other_colors(self) -> bool:
        """Whether code that was highlighted elsewhere may have other colors in the finished text.

        There, all code shares the time and the length that are allowed. Here, each block had them for itself.
        """
        all_seconds = self._num_codes_elsewhere * MAX_SECONDS
        return self._lacks_colors or self._has_too_much_code or all_seconds > MAX_SECONDS_OF_TEXT

    def add(self, slices: Sequence[str]) -> tuple[list[Op], Sequence[str]]:
        """Freeze slices of source, each a top-level block with the definitions before it.

        Return the changes, and the slices that exceed the budget.
        """
        first, redrawn, rest = len(self.html), set[int](), slices[:0]
        for number, source in enumerate(slices):
            try:
                if number:  # the first slice always freezes, as source if the time is up
                    self._meter.check()
                redrawn |= self._freeze(source)
            except BudgetExceeded:
                rest = slices[number:]
                break
        ops: list[Op] = [Append(html) for html in self.html[first:]]
        return ops + [Replace(index, self.html[index]) for index in sorted(redrawn) if index < first], rest

    def append(self, blocks: Sequence[str]) -> list[Op]:
        """Add blocks that have already been drawn."""
        self.html += blocks
        return [Append(html) for html in blocks]

    def complete(self, index: int, html: str) -> Op:
        """Replace a provisional block. A later definition could change it, unless it is code at the left edge."""
        source = self.provisional.pop(index)
        self._lacks_definitions |= "[" in source and not source.lstrip("\n").startswith(("```", "~~~"))
        self._num_codes_elsewhere += html.count(CODE_START)
        self._lacks_colors |= _PLAIN_CODE.search(html) is not None
        self._output += len(html) - len(self.html[index])
        self.html[index] = html
        return Replace(index, html)

    def _freeze(self, source: str) -> set[int]:
        """Freeze a slice and return the indexes of earlier blocks that changed.

        Raise BudgetExceeded; then no block has changed.
        """
        defined = len(self.references)
        fresh = [(block, *self._draw_first(block, source)) for block in self._parse(source)]
        drawn = [(index, self._draw(block)[0]) for index, block in self._users_of_definitions(defined)]
        changed = {index: html for index, html in drawn if html != self.html[index]}
        self._length += len(source)
        self._output += sum(len(html) for _block, html, _is_provisional in fresh)
        self._output += sum(len(html) - len(self.html[index]) for index, html in changed.items())
        if self._output > most_output(self._length):
            raise BudgetExceeded
        for block, html, is_provisional in fresh:
            if is_provisional:
                self.provisional[len(self.html)] = source
            elif block and block.labels:
                self._with_brackets[len(self.html)] = block
            self.html.append(html)
        for index, html in changed.items():
            self.html[index] = html
        return set(changed)

    def _parse(self, source: str) -> Iterator[_Block | None]:
        """Parse a slice and yield its blocks. Yield None if the slice cannot be parsed."""
        try:
            tokens = parser.parse(source, self.references, self._meter)
        except Exception:  # markdown-it can fail on odd input in many ways; the text must still be shown
            yield None
            return
        lines = source.split("\n")
        for block in parser.top_level(tokens):
            text = "\n".join(token.content for token in block if token.type == "inline" and "[" in token.content)
            yield _Block(block, lines, self._colored, normalizeReference(text))

    def _users_of_definitions(self, start: int) -> Iterator[tuple[int, _Block]]:
        """Yield index and block for each block whose bracketed text matches a definition from number `start` on."""
        fresh = [*self.references][start:] if start < len(self.references) else []
        labels = [label for label in fresh if label != COUNT]
        for index, block in self._with_brackets.items() if labels else ():
            self._meter.tick()
            if any(label in block.labels for label in labels):
                yield index, block

    def _draw_first(self, block: _Block | None, source: str) -> tuple[str, bool]:
        if block is None:
            return plain(source), False
        colors = Colors(spent=self._colored)
        parser.count_code(block.tokens, colors)
        self._colored = colors.spent
        self._has_too_much_code |= colors.is_over
        try:
            return self._draw(block)
        except BudgetExceeded:
            return plain("\n".join(block.lines)), True

    def _draw(self, block: _Block) -> tuple[str, bool]:
        """Draw a block, and return whether its code must be highlighted elsewhere."""
        colors = Colors(self._allowance, block.colored)
        drawing = Drawing(self.references, final=True, meter=self._meter, expansions=self._expansions, colors=colors)
        return draw_block(block.tokens, block.lines, drawing), colors.missing


# No block marker contains a letter, so a letter settles what kind of line this is. Exceptions are lines whose kind
# shows only at the end: after a fence, after a formula's delimiter, or after the x of a task's box.
_SETTLED = re.compile(r"(?:\[[xX]|(?!```|~~~|\$\$|\\\[|\[[xX])[\W\d_])*[^\W\d_]")
_MARKER = re.compile(r"( *)(?:(\d+)([.)])|([-*+])) +")
_ROW = re.compile(r"\|")


class _Tail:
    """The source that is not frozen. If a method raises BudgetExceeded, the source does not change."""

    def __init__(self, references: References, meter: Meter) -> None:
        self.source = ""
        self._drawing = TailDrawing(references, meter)
        self._line = 0  # where the unfinished line starts
        self._is_settled = False
        self._continues: re.Pattern[str] | None = None

    def add(self, text: str) -> list[str]:
        """Add source, and return the slices that are final: each is a top-level block and the source before it."""
        self.source += text
        return self._cut() if self._may_begin_block(text) else []

    def rest(self) -> list[str]:
        """Return all slices, because the text is complete."""
        slices = _slices(self._drawing.parse(self.source).blocks[:-1], self.source)
        slices.append(self.source[sum(map(len, slices)) :])
        self.source, self._line, self._is_settled, self._continues = "", 0, False, None
        self._drawing.forget()
        return slices

    def html(self) -> str:
        """Return the safe HTML of the source."""
        is_decided = self._is_settled or not self.source[self._line :].strip(" \t")
        return self._drawing.html(self.source, is_settled=self._is_settled, is_decided=is_decided)

    def _may_begin_block(self, text: str) -> bool:
        """Return whether the text has settled a line that does not clearly continue the last block."""
        lines: list[str] = []
        if "\n" in text:
            start, self._line = self._line, self.source.rfind("\n") + 1
            lines = self.source[start : self._line - 1].split("\n")[self._is_settled :]
            self._is_settled = False
        if not self._is_settled and _SETTLED.match(self.source, self._line):
            self._is_settled = True
            lines.append(self.source[self._line :])
        return any(line.strip(" \t") and not (self._continues and self._continues.match(line)) for line in lines)

    def _cut(self) -> list[str]:
        decided = self.source if self._is_settled else self.source[: self._line]
        blocks = self._drawing.parse(decided).blocks
        self._continues = _continuation(blocks[-1], decided) if blocks else None
        # A line right after a table ends the table only if it lacks too many cells, and more of the line could add
        # them.
        follows_table = len(blocks) > 1 and blocks[-2][0].type == "table_open"
        is_row = follows_table and end_line(blocks[-2]) == start_line(blocks[-1])
        slices = _slices(blocks[: -2 if is_row else -1], decided)
        if slices:
            frozen = sum(map(len, slices))
            self.source, self._line = self.source[frozen:], self._line - frozen
            self._drawing.forget()
        return slices


def _slices(blocks: Sequence[Sequence[Token]], source: str) -> list[str]:
    """Cut source at the end of each block. A slice is a block and the source before it."""
    lines = source.split("\n")
    return ["".join(line + "\n" for line in lines[start:end]) for start, end in pairwise([0, *map(end_line, blocks)])]


def _continuation(block: Sequence[Token], source: str) -> re.Pattern[str] | None:
    """Return how lines begin that continue a block.

    Without it, each line of a 20 KB list would cost 11 ms of parsing.
    """
    if block[0].type == "table_open":
        return _ROW
    lines = source.split("\n")
    if block[0].type == "fence":
        closing = open_fence(block[0], lines)
        return closing and re.compile(f"(?!{closing.pattern}$)")
    items = [token for token in block if token.type == "list_item_open" and token.level == 1]
    marker = _MARKER.match(lines[start_line(items[-1:])]) if items else None
    if marker is None:
        return None
    space, digits, stop, bullet = marker.groups()
    sign = re.escape(bullet) if bullet else rf"\d{{{len(digits)}}}\{stop}"
    return re.compile(f" {{{marker.end()}}}|{space}{sign}[ \t]")
