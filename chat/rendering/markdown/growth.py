"""Ways to draw what was added to the end of a text without drawing the whole of it again.

A growth stands for HTML as last drawn. `extend` takes the source that was added since and keeps the HTML equal to what
drawing everything would give, or returns False when it cannot promise that.
"""

import re
from collections.abc import Sequence
from typing import Protocol

from markdown_it.common.utils import MD_TRIM_CHARS
from markdown_it.token import Token

from chat.rendering.markdown.parser import Drawing, draw_inline
from chat.rendering.markdown.sanitize import clean, escape
from chat.rendering.text import addresses

# What follows text in a line without meaning anything: no character that could complete, open or escape markup.
# Outside ASCII only white space has a meaning; \s covers all of it.
_SAFE = r" A-Za-z0-9,.!?:'\"/=+%@^{}\-" + "\\U000000a1-\\U0010ffff"
_NOT_SAFE = "(?![\\s\\ud800-\\udfff\\ufeff])"
_CAREFUL = re.compile(f"(?:[ ]|{_NOT_SAFE}[{_SAFE}])+")
# With no bracket, entity or angle bracket open, these complete nothing either.
_EASY = re.compile(f"(?:[ ]|{_NOT_SAFE}[{_SAFE}();>])+")
CLOSING = re.compile(r"(?:</[a-z][a-z0-9]*>|\n)*")


class Growth(Protocol):
    """HTML that can follow its source."""

    def extend(self, delta: str) -> bool:
        """Take the source that was added; False if everything must be drawn again."""

    def html(self) -> str:
        """Return the HTML of all the source so far."""


class Prose:
    """The text of the last paragraph or heading, on a line that can become nothing else.

    Anything but a line end, a link definition or a heading's closing marks can only change its inline text; and plain
    characters after plain text can only add themselves.
    """

    def __init__(self, before: str, after: str, content: str, inline: str, drawing: Drawing) -> None:
        self._before, self._after = before, after
        self._content = content
        self._drawing = drawing
        self._plain: re.Pattern[str] | None = None
        self._gap = ""
        self._set_inner(inline)

    def extend(self, delta: str) -> bool:
        """Add plain text as it is; draw the paragraph again for anything else in the same line."""
        if "\n" in delta or "#" in delta or "]:" in self._content[-1:] + delta:
            return False
        is_plain = self._plain is not None and self._plain.fullmatch(delta) is not None
        is_plain = is_plain and not addresses.may_continue(self._content, delta)
        self._content += delta
        if is_plain:
            text = self._gap + delta
            self._gap = text[len(text.rstrip(" ")) :]
            self._inner += escape(text.rstrip(" "))
            return True
        self._drawing.expansions.reset()
        try:
            self._set_inner(draw_inline(self._content.rstrip(MD_TRIM_CHARS), self._drawing))
        except Exception:  # the full drawing knows what to show then
            return False
        return True

    def html(self) -> str:
        """Return the HTML of all the source so far."""
        return self._before + self._inner + self._after

    def _set_inner(self, inline: str) -> None:
        self._inner = clean(inline)
        content = self._content.rstrip(MD_TRIM_CHARS)
        last, self._gap = content[-1:], self._content[len(content) :]
        plain = _CAREFUL if any(mark in content for mark in "[<&") else _EASY
        # The last character says so; that it also ends the HTML holds even if a plugin makes links of plain words.
        continues = plain.fullmatch(last) and self._inner.endswith(escape(last))
        self._plain = plain if continues and not self._gap.strip(" ") else None


class Code:
    """The code of an unclosed fence at the left edge: only its closing line can end it."""

    def __init__(self, before: str, body: str, after: str, closing: re.Pattern[str], line: str) -> None:
        self._before, self._body, self._after = before, body, after
        self._closing = closing
        self._line, self._held = line, _blank(line)

    def extend(self, delta: str) -> bool:
        """Add code, unless a line of it may close the fence."""
        lines = (self._line + delta).split("\n")
        if any(map(self._closing.fullmatch, lines)):
            return False
        text, held = self._held + delta, _blank(lines[-1])
        self._body += escape(text.removesuffix(held))
        self._line, self._held = lines[-1], held
        return True

    def html(self) -> str:
        """Return the HTML of all the source so far."""
        return self._before + self._body + self._after


def growth_of(tokens: Sequence[Token], source: str, html: tuple[str, str], drawing: Drawing) -> Growth | None:
    """Find out how a drawing can follow its source, whose last line must be settled unless it is code.

    `tokens` are those of the last top-level block; `html` is what was drawn before it, and it.
    """
    if tokens[0].type == "fence":
        return _code(tokens[0], source, html)
    return _prose(tokens, source, html, drawing)


def open_fence(token: Token, lines: Sequence[str]) -> re.Pattern[str] | None:
    """Return what a line must be to close this fence; None if it is closed already, or not simply at the left edge.

    A first line with a bar could still turn out to be the head of a table.
    """
    start = token.map[0] if token.map else 0
    if token.type != "fence" or len(lines) < start + 2 or not lines[start].startswith(token.markup):
        return None
    if "|" in lines[start]:
        return None
    closing = re.compile(rf" {{0,3}}{token.markup[0]}{{{len(token.markup)},}}[ \t]*")
    return None if any(map(closing.fullmatch, lines[start + 1 :])) else closing


def _code(token: Token, source: str, html: tuple[str, str]) -> Growth | None:
    closing = open_fence(token, source.split("\n"))
    before, mark, rest = html[1].partition('<code class="hl">')
    body = escape(token.content)
    after = rest[len(body) :]
    if closing is None or rest != body + after or CLOSING.fullmatch(after) is None:
        return None
    return Code(html[0] + before + mark, body, after, closing, source[source.rfind("\n") + 1 :])


def _prose(tokens: Sequence[Token], source: str, html: tuple[str, str], drawing: Drawing) -> Growth | None:
    index = max((index for index, token in enumerate(tokens) if token.type == "inline"), default=0)
    token, follows = tokens[index], tokens[index + 1 :]
    if not _reaches_end(token, source) or any(closing.nesting != -1 for closing in follows):
        return None
    if "]:" in source or tokens[index - 1].type not in ("paragraph_open", "heading_open"):
        return None  # a link definition that is not complete yet, or a cell
    inline = drawing.inlines[token.content]
    before, inner, after = html[1].rpartition(clean(inline))
    if not inner or CLOSING.fullmatch(after) is None:
        return None
    content = token.content + source[len(source.rstrip(MD_TRIM_CHARS)) :]
    return Prose(html[0] + before, after, content, inline, drawing)


def _reaches_end(token: Token, source: str) -> bool:
    if token.map is None or token.map[1] != source.count("\n") + 1:
        return False
    return source.rstrip(MD_TRIM_CHARS).endswith(token.content.rsplit("\n", 1)[-1])


def _blank(line: str) -> str:
    return "" if line.strip(" \t") else line  # the parser leaves out a last line of white space
