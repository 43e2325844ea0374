"""The unfinished end of a growing text: which blocks of it are final, and how it looks meanwhile."""

import re
from collections import ChainMap
from collections.abc import Sequence
from typing import NamedTuple

from markdown_it.token import Token

from chat.rendering.budget import LONGEST_TAIL, Expansions, Meter, TooDear
from chat.rendering.markdown import cutting, parser
from chat.rendering.markdown.blocks import draw_block, is_plain
from chat.rendering.markdown.growth import Growth, growth_of
from chat.rendering.markdown.parser import Drawing, References
from chat.rendering.markdown.part import Drawn, Part, part_of
from chat.rendering.markdown.source import plain


class _Parsed(NamedTuple):
    tokens: list[Token]
    references: References


class Tail:
    """Source that is not frozen yet; looked at as blocks once per line at most, not once per piece.

    Whatever takes too long raises TooDear, and leaves the source as it is.
    """

    def __init__(self, references: References, meter: Meter) -> None:
        self._references = references
        self._meter = meter
        self._source = ""
        self._line = 0  # where the unfinished line starts
        self._settled = False
        self._continues: re.Pattern[str] | None = None
        self._html, self._drawn = "", 0
        self._growth: Growth | None = None
        self._part: Part | None = None
        self._parsed: _Parsed | None = None
        self._inlines: dict[str, str] = {}

    def add(self, text: str) -> list[str]:
        """Take more source, give away the slices that are final now: each a top-level block and what precedes it."""
        self._source += text
        self._parsed = None
        return self._cut() if self._is_due(text) else []

    def rest(self) -> list[str]:
        """Give away everything, block by block, as no more will come."""
        slices = cutting.slices(_blocks(self._parse(self._source))[:-1], self._source)
        slices.append(self._source[sum(map(len, slices)) :])
        self._source, self._line, self._settled, self._continues = "", 0, False, None
        self._forget()
        return slices

    @property
    def source(self) -> str:
        return self._source

    def html(self) -> str:
        """Return the HTML of the source, equal to drawing all of it afresh."""
        delta = self._source[self._drawn :]
        if delta and self._growth is not None and self._growth.extend(delta):
            self._html = self._growth.html()
        elif delta:
            self._html, self._growth = self._draw()
        self._drawn = len(self._source)
        return self._html

    def _is_due(self, text: str) -> bool:
        lines: list[str] = []
        if "\n" in text:
            start, self._line = self._line, self._source.rfind("\n") + 1
            lines = self._source[start : self._line - 1].split("\n")[self._settled :]
            self._settled = False
        if not self._settled and cutting.is_settled(self._source, self._line):
            self._settled = True
            lines.append(self._source[self._line :])
        return any(line.strip(" \t") and not (self._continues and self._continues.match(line)) for line in lines)

    def _cut(self) -> list[str]:
        decided = self._source if self._settled else self._source[: self._line]
        parsed = self._parse(decided)
        blocks = _blocks(parsed)
        self._continues = cutting.continuation(blocks[-1], decided) if blocks else None
        if cutting.is_row_of_table(blocks):
            blocks.pop()
        slices = cutting.slices(blocks[:-1], decided)
        if slices:
            gone = sum(map(len, slices))
            self._source, self._line = self._source[gone:], self._line - gone
            self._forget()
        elif len(decided) == len(self._source):
            self._parsed = parsed
        return slices

    def _draw(self) -> Drawn:
        return self._draw_part() or self._draw_all()

    def _draw_part(self) -> Drawn | None:
        if self._part is None:
            return None
        drawing = self._drawing(ChainMap({}, self._references))
        try:
            drawn = self._part.draw(self._source, drawing, growing=self._settled)
        except Exception:  # the full drawing knows what to show then
            drawn = None
        if drawn is None:
            self._part = None
        return drawn

    def _draw_all(self) -> Drawn:
        parsed = self._parsed or self._parse(self._source)
        if parsed is None:
            return Drawn(plain(self._source), None)
        blocks, lines = _blocks(parsed), self._source.split("\n")
        drawing = self._drawing(parsed.references)
        drawn = [draw_block(block, lines, drawing) for block in blocks]
        self._inlines, growth = drawing.inlines, None
        if blocks and not is_plain(drawn[-1]):
            html = "".join(block + "\n" for block in drawn[:-1]), drawn[-1]
            decided = self._settled or not self._source[self._line :].strip(" \t")
            self._part = part_of(blocks[-1], self._source, html, drawing, decided=decided)
            if self._settled or blocks[-1][0].type == "fence":
                growth = growth_of(blocks[-1], self._source, html, drawing)
        return Drawn("\n".join(drawn), growth)

    def _drawing(self, references: References) -> Drawing:
        expansions = Expansions(strict=True)
        return Drawing(references, final=False, known=self._inlines, meter=self._meter, expansions=expansions)

    def _parse(self, source: str) -> _Parsed | None:
        if len(source) > LONGEST_TAIL and self._meter.is_limited:
            raise TooDear
        references: References = ChainMap({}, self._references)
        try:
            return _Parsed(parser.parse(source, references, self._meter), references)
        except Exception:  # markdown-it can fail on odd input in many ways; the text must still be seen
            return None

    def _forget(self) -> None:
        self._html, self._drawn = "", 0
        self._growth = self._part = self._parsed = None
        self._inlines = {}


def _blocks(parsed: _Parsed | None) -> list[Sequence[Token]]:
    return [] if parsed is None else [*parser.top_level(parsed.tokens)]
