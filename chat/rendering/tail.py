"""The unfinished end of a growing text: which blocks of it are final, and how it looks meanwhile."""

import re
from collections import ChainMap
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from markdown_it.token import Token

from chat.rendering import engine
from chat.rendering.engine import Drawing, Inline, References
from chat.rendering.growth import Growth, growth_of, open_fence
from chat.rendering.markdown import draw_block, is_plain, plain

# A letter settles what kind of line this is: no letter is part of a block marker. Except behind what may be a fence
# (its kind is known at the line's end only), and the x of a task's box.
_SETTLED = re.compile(r"(?:\[[xX]|(?!```|~~~|\[[xX])[\W\d_])*+[^\W\d_]")


class _Parsed(NamedTuple):
    tokens: list[Token]
    references: References


class Tail:
    """Source that is not frozen yet; looked at as blocks once per line, not once per piece."""

    def __init__(self, references: References) -> None:
        self._references = references
        self._source = ""
        self._line = 0  # where the unfinished line starts
        self._settled = False
        self._fence: re.Pattern[str] | None = None
        self._html, self._drawn = "", 0
        self._growth: Growth | None = None
        self._parsed: _Parsed | None = None
        self._inlines: dict[str, Inline] = {}

    def add(self, text: str) -> list[str]:
        """Take more source, give away the slices that are final now: each a top-level block and what precedes it."""
        self._source += text
        self._parsed = None
        return self._cut() if self._is_due(text) else []

    def rest(self) -> list[str]:
        """Give away everything, block by block, as no more will come."""
        slices = _slices(_blocks(self._parse(self._source))[:-1], self._source)
        slices.append(self._source[sum(map(len, slices)) :])
        self._source, self._line, self._settled, self._fence = "", 0, False, None
        self._forget()
        return slices

    def html(self) -> str:
        """Return the HTML of the source, equal to drawing all of it afresh."""
        delta = self._source[self._drawn :]
        if delta and self._growth is not None and self._growth.extend(delta):
            self._html = self._growth.html()
        elif delta:
            self._html = self._draw()
        self._drawn = len(self._source)
        return self._html

    def _is_due(self, text: str) -> bool:
        due = False
        if "\n" in text:
            start, self._line = self._line, self._source.rfind("\n") + 1
            lines = self._source[start : self._line - 1].split("\n")
            if self._fence is not None and not any(map(self._fence.fullmatch, lines)):
                return False
            due = any(line.strip(" \t") for line in lines[self._settled :])
            self._settled, self._fence = False, None
        if not self._settled and self._fence is None and _SETTLED.match(self._source, self._line):
            self._settled = due = True
        return due

    def _cut(self) -> list[str]:
        decided = self._source if self._settled else self._source[: self._line]
        parsed = self._parse(decided)
        blocks = _blocks(parsed)
        self._fence = open_fence(blocks[-1][0], decided.split("\n")) if blocks else None
        if self._fence is not None:
            self._settled = False
        if _is_row_of_table(blocks):
            blocks.pop()
        slices = _slices(blocks[:-1], decided)
        if slices:
            gone = sum(map(len, slices))
            self._source, self._line = self._source[gone:], self._line - gone
            self._forget()
        elif len(decided) == len(self._source):
            self._parsed = parsed
        return slices

    def _draw(self) -> str:
        parsed = self._parsed or self._parse(self._source)
        self._growth = None
        if parsed is None:
            return plain(self._source)
        blocks, lines = _blocks(parsed), self._source.split("\n")
        drawing = Drawing(parsed.references, final=False, known=self._inlines)
        drawn = [draw_block(block, lines, drawing) for block in blocks]
        self._inlines = drawing.inlines
        if blocks and not is_plain(drawn[-1]) and (self._settled or self._fence is not None):
            before = "".join(html + "\n" for html in drawn[:-1])
            self._growth = growth_of(blocks[-1], self._source, (before, drawn[-1]), drawing)
        return "\n".join(drawn)

    def _parse(self, source: str) -> _Parsed | None:
        references: References = ChainMap({}, self._references)
        try:
            return _Parsed(engine.parse(source, references), references)
        except Exception:  # markdown-it can fail on odd input in many ways; the text must still be seen
            return None

    def _forget(self) -> None:
        self._html, self._drawn = "", 0
        self._growth = self._parsed = None
        self._inlines = {}


def _blocks(parsed: _Parsed | None) -> list[Sequence[Token]]:
    return [] if parsed is None else [*engine.top_level(parsed.tokens)]


def _slices(blocks: Sequence[Sequence[Token]], source: str) -> list[str]:
    lines, ends = source.split("\n"), [(block[0].map or [0, 0])[1] for block in blocks]
    return ["".join(line + "\n" for line in lines[start:end]) for start, end in pairwise([0, *ends])]


def _is_row_of_table(blocks: Sequence[Sequence[Token]]) -> bool:
    """A line right after a table ends it only by lacking too many cells, which more of the line could bring."""
    if len(blocks) < 2 or blocks[-2][0].type != "table_open":
        return False
    table, line = blocks[-2][0].map, blocks[-1][0].map
    return table is not None and line is not None and table[1] == line[0]
