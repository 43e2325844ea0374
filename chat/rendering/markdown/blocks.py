"""Markdown drawn as safe HTML, block by block; pure, and the same wherever it runs."""

import logging
from collections.abc import Sequence

from markdown_it.token import Token

from chat.rendering.budget import (
    UNLIMITED,
    Allowance,
    Expansions,
    Meter,
    TooDear,
    end_of_markdown,
    most_expanded,
    most_output,
)
from chat.rendering.markdown import parser
from chat.rendering.markdown.highlight import Colours
from chat.rendering.markdown.parser import Drawing
from chat.rendering.markdown.sanitize import clean
from chat.rendering.markdown.source import PLAIN, plain, plain_blocks

log = logging.getLogger(__name__)


def draw_all(source: str, allowance: Allowance = UNLIMITED) -> tuple[str, ...]:
    """Draw normalised source, past every cache. What is beyond the limits of length and output is shown as source.

    Raises TooDear: the allowance is not enough.
    """
    end = end_of_markdown(source)
    if end is not None:
        return (*_draw(source[:end], allowance), *plain_blocks(source[end:]))
    return _draw(source, allowance)


def draw_block(tokens: Sequence[Token], lines: Sequence[str], drawing: Drawing) -> str:
    """Draw one top-level block, or its source if it cannot be drawn; `lines` are those that the tokens count."""
    try:
        return clean(parser.draw(tokens, drawing)).rstrip("\n")
    except Exception as error:  # the libraries below can fail on odd input in many ways; the text must still be seen
        start, end = tokens[0].map or (0, len(lines))
        if drawing.final:
            log.warning("A Markdown block of %d lines is shown as source: %r", end - start, error)
        return plain("\n".join(lines[start:end]))


def is_plain(block: str) -> bool:
    """Tell whether a block is shown as its source."""
    return block.startswith(PLAIN)


def _draw(source: str, allowance: Allowance) -> tuple[str, ...]:
    meter = None if allowance is UNLIMITED else Meter(allowance.seconds)
    references: parser.References = {}
    try:
        tokens = parser.parse(source, references, meter)
    except Exception:
        log.exception("Markdown of %d characters could not be parsed", len(source))
        return (plain(source),)
    colours = Colours(allowance)
    expansions = Expansions(most_expanded(len(source)))
    drawing = Drawing(references, final=True, meter=meter, expansions=expansions, colours=colours)
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
    if colours.missing:
        raise TooDear
    return tuple(drawn)
