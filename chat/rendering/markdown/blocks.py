"""Draw Markdown as blocks of safe HTML, or as source. Pure."""

import logging
import re
from collections.abc import Iterator, Sequence

from markdown_it.token import Token

from chat.rendering.budget import (
    UNLIMITED,
    Allowance,
    BudgetExceeded,
    Expansions,
    Meter,
    end_of_markdown,
    most_expanded,
    most_output,
)
from chat.rendering.markdown import external_images, highlight, parser
from chat.rendering.markdown.highlight import Colors
from chat.rendering.markdown.parser import Drawing
from chat.rendering.markdown.sanitize import clean, escape

logger = logging.getLogger(__name__)
PLAIN = '<pre class="plain">'
# In characters. Source is shown in blocks of at most this length, so that a browser lays out only the visible ones.
MAX_PLAIN_LENGTH = 8_000

_ODD = re.compile("[\r\0\ud800-\udfff]")


def draw_all(source: str, allowance: Allowance = UNLIMITED) -> tuple[str, ...]:
    """Draw normalized source as blocks of HTML. Show text beyond the limits of length and output as source.

    Raise BudgetExceeded if the allowance is not enough.
    """
    end = end_of_markdown(source)
    if end is not None:
        return (*_draw(source[:end], allowance), *plain_blocks(source[end:]))
    return _draw(source, allowance)


def draw_block(tokens: Sequence[Token], lines: Sequence[str], drawing: Drawing) -> str:
    """Draw one top-level block, or its source if that fails. The tokens' line numbers refer to `lines`."""
    try:
        return clean(parser.draw(tokens, drawing)).rstrip("\n")
    except Exception as error:  # the libraries fail on odd input in many ways; the text must still be shown
        start, end = tokens[0].map or (0, len(lines))
        if drawing.final:
            logger.warning("A Markdown block of %d lines is shown as source: %r", end - start, error)
        return plain("\n".join(lines[start:end]))


def is_plain(block: str) -> bool:
    """Return whether a block is shown as its source."""
    return block.startswith(PLAIN)


def _draw(source: str, allowance: Allowance) -> tuple[str, ...]:
    meter = None if allowance is UNLIMITED else Meter(allowance.seconds)
    references: parser.References = {}
    try:
        tokens = parser.parse(source, references, meter)
    except Exception:
        logger.exception("Markdown of %d characters could not be parsed", len(source))
        return (plain(source),)
    _require_colors(tokens, allowance)
    expansions = Expansions(most_expanded(len(source)))
    drawing = Drawing(references, final=True, meter=meter, expansions=expansions, colors=Colors(allowance))
    drawn, lines, room = list[str](), source.split("\n"), most_output(len(source))
    for block in parser.top_level(tokens):
        if meter is not None:
            meter.check()
        html = draw_block(block, lines, drawing)
        room -= len(html)
        if room < 0:
            start = (block[0].map or [0])[0]
            return (*drawn, *plain_blocks("\n".join(lines[start:])))
        drawn.append(html)
    return tuple(drawn)


def _require_colors(tokens: Sequence[Token], allowance: Allowance) -> None:
    """Raise BudgetExceeded if code must be highlighted elsewhere, before any block is drawn in vain."""
    colors = Colors(allowance)
    parser.count_code(tokens, colors)
    if colors.missing:
        raise BudgetExceeded


def draw_in_process(picture_key: str, source: str) -> Iterator[str]:
    """Yield the HTML of each block, in a process of the pool. The key signs only addresses of images."""
    external_images.use_key(picture_key)
    highlight.use_timer()
    yield from draw_all(source)


def highlight_in_process(code: str, language: str) -> Iterator[str]:
    """Yield the code as HTML with colored spans, in a process of the pool. Yield nothing if it stays plain."""
    highlight.use_timer()
    yield highlight.highlight(code, language) or ""


def normalize(text: str) -> str:
    """Return the text with LF line ends and encodable as UTF-8 (MSG-12). NUL and lone surrogates become U+FFFD."""
    if _ODD.search(text) is None:
        return text
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def plain(source: str) -> str:
    """Return a block of HTML that shows the source unchanged."""
    return f"{PLAIN}<code>{escape(source.strip(chr(10)))}</code></pre>"


class PlainText:
    """A growing text that is shown as source. Its blocks do not depend on how the text is split into pieces."""

    def __init__(self, text: str = "") -> None:
        self._text = text

    def add(self, text: str) -> list[str]:
        """Add text, and return the HTML of the blocks that are complete now."""
        self._text += text
        return list(self._complete())

    def end(self) -> list[str]:
        """Return the HTML of the remaining blocks."""
        blocks = [*self._complete(), self.html()]
        self._text = ""
        return list(filter(None, blocks))

    def html(self) -> str:
        """Return the HTML of the text that is not in a complete block."""
        return plain(self._text) if self._text.strip() else ""

    def _complete(self) -> Iterator[str]:
        start = 0
        while len(self._text) - start > MAX_PLAIN_LENGTH:
            newline = self._text.rfind("\n", start, start + MAX_PLAIN_LENGTH)
            end = newline + 1 if newline >= 0 else start + MAX_PLAIN_LENGTH
            if (block := self._text[start:end]).strip():
                yield plain(block)
            start = end
        self._text = self._text[start:]


def plain_blocks(source: str) -> tuple[str, ...]:
    """Return all blocks of a text that is shown as source."""
    return tuple(PlainText(source).end())
