"""Drawing only the end of a long list or table: its earlier items or rows stay as they were drawn."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markdown_it.rules_block.table import MAX_AUTOCOMPLETED_CELLS
from markdown_it.token import Token

from chat.rendering.markdown import parser
from chat.rendering.markdown.blocks import draw_block
from chat.rendering.markdown.growth import CLOSING, Growth, growth_of
from chat.rendering.markdown.parser import Drawing
from chat.rendering.markdown.sanitize import clean

_BLANK_LINE = re.compile(r"\n[ \t]*\n")


class Drawn(NamedTuple):
    """HTML, and how it can follow its source."""

    html: str
    growth: Growth | None


class Part:
    """The last item of a list or row of a table at the top level, between the HTML of what surrounds it.

    An item is parsed as a list of its own, a row under the head of its table: they mean the same there. Whatever could
    mean more than that (another block, a list that turns loose, a link definition) is left to a full drawing.
    """

    def __init__(self, tokens: Sequence[Token], source: str) -> None:
        self._first = tokens[0]
        self._is_table = tokens[0].type == "table_open"
        self._is_loose = _is_loose(tokens)
        self._columns = sum(token.type == "th_open" for token in tokens)
        head = _line(tokens[0])
        self._head = source[_offset(source, head) : _offset(source, head + 2)] if self._is_table else ""
        self._before = self._after = ""
        self._start = 0

    def enclose(self, piece: Sequence[Token], source: str, html: tuple[str, str], drawing: Drawing) -> bool:
        """Find the last item or row in the HTML (what was drawn before the block, and the block)."""
        before, drawn, self._after = html[1].rpartition(self._clean(piece, drawing))
        self._before, self._start = html[0] + before, _offset(source, _line(piece[0]))
        return bool(drawn) and CLOSING.fullmatch(self._after) is not None

    def draw(self, source: str, drawing: Drawing, *, growing: bool) -> Drawn | None:
        """Draw all of the source by its end alone, or return None if that would not be sure to be right."""
        text = self._head + source[self._start :]
        if "]:" in text:
            return None
        block, *others = parser.top_level(parser.parse(text, drawing.references, drawing.meter))
        lines = text.split("\n")
        if not self._continues(block, lines[: _end(block)], source):
            return None
        pieces = [*_pieces(block)]
        *finished, last = [self._clean(piece, drawing) for piece in pieces]
        self._before += "".join(finished)
        self._start += _offset(text, _line(pieces[-1][0])) - len(self._head)
        drawn = [self._before, last + self._after, *("\n" + draw_block(other, lines, drawing) for other in others)]
        html = "".join(drawn[:-1]), drawn[-1]
        return Drawn("".join(html), growth_of([block, *others][-1], text, html, drawing) if growing else None)

    def _continues(self, tokens: Sequence[Token], lines: Sequence[str], source: str) -> bool:
        if (tokens[0].type, tokens[0].markup) != (self._first.type, self._first.markup):
            return False
        if self._is_table:
            return any(_pieces(tokens)) and self._columns * source.count("\n") < MAX_AUTOCOMPLETED_CELLS
        if self._is_loose:
            for token in tokens:
                token.hidden = token.hidden and token.level != 2
        return self._is_loose or _BLANK_LINE.search("\n".join(lines).rstrip()) is None

    def _clean(self, piece: Sequence[Token], drawing: Drawing) -> str:
        html = parser.draw(piece, drawing)
        return clean(f"<table><tbody>{html}</tbody></table>")[14:-16] if self._is_table else clean(html)


def part_of(
    tokens: Sequence[Token], source: str, html: tuple[str, str], drawing: Drawing, *, decided: bool
) -> Part | None:
    """Return the part that can be drawn alone from now on, if the last top-level block is a list or table.

    `decided`: no line of the source can change its meaning any more.
    """
    pieces = [*_pieces(tokens)]
    if not pieces or "]:" in source:
        return None
    if tokens[0].type != "table_open" and not any(map(_is_item_text, tokens)):
        return None  # whether the list is loose does not show yet
    if _is_loose(tokens) and not decided:
        return None  # or may show for a moment only
    part = Part(tokens, source)
    return part if part.enclose(pieces[-1], source, html, drawing) else None


def _pieces(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Split a list into its items, or the body of a table into its rows."""
    if tokens[0].type == "table_open":
        kind, level, body = (
            "tr",
            2,
            next((i for i, token in enumerate(tokens) if token.type == "tbody_open"), len(tokens)),
        )
    else:
        kind, level, body = "list_item", 1, 0
    start = body
    for index, token in enumerate(tokens[body:], body):
        if token.level == level and token.type == f"{kind}_open":
            start = index
        elif token.level == level and token.type == f"{kind}_close":
            yield tokens[start : index + 1]


def _is_loose(tokens: Sequence[Token]) -> bool:
    return any(not token.hidden for token in tokens if _is_item_text(token))


def _is_item_text(token: Token) -> bool:
    return token.type == "paragraph_open" and token.level == 2


def _line(token: Token) -> int:
    return token.map[0] if token.map else 0


def _end(tokens: Sequence[Token]) -> int:
    return tokens[0].map[1] if tokens[0].map else 0


def _offset(source: str, line: int) -> int:
    return sum(len(text) + 1 for text in source.split("\n")[:line])
