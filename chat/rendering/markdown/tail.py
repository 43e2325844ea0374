"""Draw the unfinished end of a growing text. The result always equals that of drawing the whole tail.

Drawing the whole tail takes 0.3 ms for a paragraph of 500 characters, 15 ms for a list of 20 KB and 30 ms for a table
of 20 KB, which uses all the time of a frame. Two shortcuts draw only the part that usually changes. Text that is
appended to a paragraph or to code takes 0.02 ms (`_OpenText`). The last item of a long list, or the last row of a
table, takes 0.5 ms (`_LastPiece`).
"""

import re
from collections import ChainMap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markdown_it.rules_block.table import MAX_AUTOCOMPLETED_CELLS
from markdown_it.token import Token

from chat import addresses
from chat.rendering.budget import MAX_TAIL_LENGTH, BudgetExceeded, Expansions, Meter
from chat.rendering.markdown import parser
from chat.rendering.markdown.blocks import draw_block, is_plain, plain
from chat.rendering.markdown.code_blocks import CODE_START
from chat.rendering.markdown.parser import Drawing, GrowingInline, References
from chat.rendering.markdown.sanitize import clean, escape

_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_CLOSING_TAGS = re.compile(r"(?:</[a-z][a-z0-9]*>|\n)*\Z")
_END_OF_PROSE = re.compile(r"(?:</(?:p|li|[ou]l|h[1-6]|blockquote|div)>|\n)*\Z")
# Characters that neither complete, open nor escape markup after plain text. Outside ASCII, only white space does.
_SAFE = r" A-Za-z0-9,.!?:'\"/=+%@^{}\-" + "\\U000000a1-\\U0010ffff"
_NOT_SAFE = "(?![\\s\\ud800-\\udfff\\ufeff])"
_CAREFUL = re.compile(f"(?:[ ]|{_NOT_SAFE}[{_SAFE}])+")
# These do not complete markup either if no bracket, entity or angle bracket is open.
_EASY = re.compile(f"(?:[ ]|{_NOT_SAFE}[{_SAFE}();>])+")


class Parsed(NamedTuple):
    """Top-level blocks, and the link definitions of the source and of the blocks before it."""

    blocks: list[Sequence[Token]]
    references: References
    is_failed: bool = False


class TailDrawing:
    """Parses and draws the tail. A method that exceeds the budget raises BudgetExceeded."""

    def __init__(self, references: References, meter: Meter) -> None:
        self._references = references
        self._meter = meter
        self.forget()

    def forget(self) -> None:
        """Discard all drawings, because the tail now starts at another block."""
        self._source = self._html = self._parsed_source = ""
        self._parsed = Parsed([], {})
        self._inlines: dict[str, str] = {}
        self._open: _OpenText | None = None
        self._last_piece: _LastPiece | None = None
        self._growing = GrowingInline()

    def parse(self, source: str) -> Parsed:
        """Parse the tail or its beginning. Return no blocks if the parser fails."""
        if source != self._parsed_source:
            if len(source) > MAX_TAIL_LENGTH and self._meter.is_limited:
                raise BudgetExceeded
            references: References = ChainMap({}, self._references)
            try:
                blocks = [*parser.top_level(parser.parse(source, references, self._meter))]
                self._parsed = Parsed(blocks, references)
            except Exception:  # markdown-it can fail on odd input in many ways; the text must still be shown
                self._parsed = Parsed([], references, is_failed=True)
            self._parsed_source = source
        return self._parsed

    def html(self, source: str, *, is_settled: bool, is_decided: bool) -> str:
        """Return the safe HTML of the tail.

        `is_settled`: more text cannot change the kind of the last line. `is_decided`: that, or the line is blank.
        """
        added = source[len(self._source) :]
        if added and self._open is not None and self._open.take(self._source, added):
            self._html = self._open.html
        elif added:
            self._open = None
            self._html = self._draw_last_piece(source) or self._draw(source, is_decided)
            if self._open is None and is_settled:
                self._open = _open_prose(source, self._html)
        self._source = source
        return self._html

    def _draw_last_piece(self, source: str) -> str | None:
        html = None
        if self._last_piece is not None:
            try:
                html = self._last_piece.draw(source, self._drawing(ChainMap({}, self._references)))
            except Exception:  # the caller then draws the whole tail
                html = None
        if html is None:
            self._last_piece = None
        return html

    def _draw(self, source: str, is_decided: bool) -> str:
        blocks, references, is_failed = self.parse(source)
        if is_failed:
            return plain(source)
        lines, drawing = source.split("\n"), self._drawing(references)
        drawn = [draw_block(block, lines, drawing) for block in blocks]
        self._inlines = drawing.inlines
        html = "\n".join(drawn)
        if drawn and not is_plain(drawn[-1]):
            self._last_piece = _LastPiece.of(blocks[-1], source, html, drawing, is_decided=is_decided)
            self._open = _open_code(blocks[-1][0], source, html)
        return html

    def _drawing(self, references: References) -> Drawing:
        expansions = Expansions(strict=True)
        return Drawing(
            references,
            final=False,
            meter=self._meter,
            expansions=expansions,
            known=self._inlines,
            growing=self._growing,
        )


@dataclass(slots=True)
class _OpenText:
    """HTML to which more plain text can be added, between `head` and `foot`, without parsing.

    White space is `held` back until something follows it. `pattern` is what added plain text must match. For code it
    matches the line that ends the code.
    """

    head: str
    foot: str
    held: str
    pattern: re.Pattern[str]
    is_code: bool

    @property
    def html(self) -> str:
        return self.head + self.foot

    def take(self, source: str, added: str) -> bool:
        """Add text that was added to the source. Return False if the source must be parsed."""
        text = self.held + added
        if self.is_code:
            lines = (source[source.rfind("\n") + 1 :] + added).split("\n")
            if any(map(self.pattern.fullmatch, lines)):
                return False
            held = _blank(lines[-1])
        else:
            if not self.pattern.fullmatch(added) or addresses.may_continue(source, added):
                return False
            held = text[len(text.rstrip(" ")) :]
        self.head += escape(text.removesuffix(held))
        self.held = held
        return True


def _open_prose(source: str, html: str) -> _OpenText | None:
    """Return the place in a paragraph or heading, at the end of settled source, where plain text can be added.

    The HTML must end with the last character as plain text, followed only by closing tags of blocks.
    """
    text = source.rstrip(" ")
    pattern = _CAREFUL if any(mark in source for mark in "[<&") else _EASY
    if "]:" in source or not pattern.fullmatch(text[-1:]):  # may be an unfinished link definition
        return None
    start = max(0, len(html) - 400)
    end = _END_OF_PROSE.search(html, start)
    if end is None or not html.endswith(escape(text[-1]), start, end.start()):
        return None
    return _OpenText(html[: end.start()], end[0], source[len(text) :], pattern, is_code=False)


def _open_code(token: Token, source: str, html: str) -> _OpenText | None:
    """Return the place where code can be added, or None if the last block is not an unclosed fence."""
    closing, code = open_fence(token, source.split("\n")), escape(token.content)
    start = html.rfind(CODE_START) + len(CODE_START)
    end = start + len(code)
    if closing is None or not html.startswith(code, start) or not _CLOSING_TAGS.match(html, end):
        return None
    return _OpenText(html[:end], html[end:], _blank(source[source.rfind("\n") + 1 :]), closing, is_code=True)


def open_fence(token: Token, lines: Sequence[str]) -> re.Pattern[str] | None:
    """Return a pattern of the line that closes a fence.

    Return None if the fence is closed, or does not simply start at the left edge. Also return None for a first line
    with a bar, which could still become the head of a table.
    """
    start = start_line([token])
    if token.type != "fence" or len(lines) < start + 2 or not lines[start].startswith(token.markup):
        return None
    if "|" in lines[start]:
        return None
    closing = re.compile(rf" {{0,3}}{token.markup[0]}{{{len(token.markup)},}}[ \t]*")
    return None if any(map(closing.fullmatch, lines[start + 1 :])) else closing


def _blank(line: str) -> str:
    return "" if line.strip(" \t") else line  # the parser drops a last line of white space


class _LastPiece:
    """The last item of a list or row of a table. While the block grows, only this piece is drawn.

    An item has the same meaning in a separate list, and a row has the same meaning under the head of its table. If the
    text could mean more (a link definition, a list that becomes loose, another block), the whole tail is drawn.
    """

    def __init__(self, tokens: Sequence[Token], source: str, start: int) -> None:
        self._first = tokens[0]
        self._is_table = tokens[0].type == "table_open"
        self._is_loose = any(not token.hidden for token in _item_texts(tokens))
        self._columns = sum(token.type == "th_open" for token in tokens)
        head = start_line(tokens)
        self._head = source[_offset(source, head) : _offset(source, head + 2)] if self._is_table else ""
        self._start = start
        self._before = self._after = ""

    @classmethod
    def of(
        cls, tokens: Sequence[Token], source: str, html: str, drawing: Drawing, *, is_decided: bool
    ) -> "_LastPiece | None":
        """Return the last piece of the last block of source, or None if the whole tail must be drawn each time."""
        pieces = [*_pieces(tokens)]
        if not pieces or "]:" in source:
            return None
        piece = cls(tokens, source, _offset(source, start_line(pieces[-1])))
        if not piece._is_table and (not _item_texts(tokens) or (piece._is_loose and not is_decided)):
            return None  # it is not yet known whether the list is loose, or it seems so only for a moment
        piece._before, found, piece._after = html.rpartition(piece._clean(pieces[-1], drawing))
        return piece if found and _CLOSING_TAGS.match(piece._after) else None

    def draw(self, source: str, drawing: Drawing) -> str | None:
        """Return the HTML of the whole source, or None if drawing the last piece is not enough."""
        text = self._head + source[self._start :]
        if "]:" in text:
            return None
        block, *others = parser.top_level(parser.parse(text, drawing.references, drawing.meter))
        if others or not self._continues(block, text, source):
            return None
        pieces = [*_pieces(block)]
        *finished, last = [self._clean(piece, drawing) for piece in pieces]
        self._before += "".join(finished)
        self._start += _offset(text, start_line(pieces[-1])) - len(self._head)
        return self._before + last + self._after

    def _continues(self, tokens: Sequence[Token], text: str, source: str) -> bool:
        if (tokens[0].type, tokens[0].markup) != (self._first.type, self._first.markup):
            return False
        if self._is_table:
            return any(_pieces(tokens)) and self._columns * source.count("\n") < MAX_AUTOCOMPLETED_CELLS
        if self._is_loose:
            for token in tokens:
                token.hidden = token.hidden and token.level != 2
        return self._is_loose or _BLANK_LINE.search(text.rstrip()) is None

    def _clean(self, piece: Sequence[Token], drawing: Drawing) -> str:
        html = parser.draw(piece, drawing)
        return clean(f"<table><tbody>{html}</tbody></table>")[14:-16] if self._is_table else clean(html)


def _pieces(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield the items of a list, or the rows of a table's body. Yield nothing for other blocks."""
    is_table = tokens[0].type == "table_open"
    kind, level = ("tr", 2) if is_table else ("list_item", 1)
    start = next((i for i, token in enumerate(tokens) if token.type == "tbody_open"), len(tokens)) if is_table else 0
    for index, token in enumerate(tokens[start:], start):
        if token.level == level and token.type == f"{kind}_open":
            start = index
        elif token.level == level and token.type == f"{kind}_close":
            yield tokens[start : index + 1]


def _item_texts(tokens: Sequence[Token]) -> list[Token]:
    return [token for token in tokens if token.type == "paragraph_open" and token.level == 2]


def start_line(tokens: Sequence[Token]) -> int:
    return tokens[0].map[0] if tokens[0].map else 0


def end_line(tokens: Sequence[Token]) -> int:
    return tokens[0].map[1] if tokens[0].map else 0


def _offset(source: str, line: int) -> int:
    """Return the index at which a line starts."""
    return sum(len(text) + 1 for text in source.split("\n")[:line])
