"""Numbers in square brackets, such as [1] or [1, 2], which may cite pages.

The HTML does not depend on the message's sources. The page makes a chip of each number for which the message has a
source (`static/js/messages/citations.js`), so a growing text is not drawn again when a source is added.
"""

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from agents.sources import CITATION, NUMBER

_CITATION = re.compile(CITATION)
_NUMBERS = re.compile(f"({NUMBER})")


def use(md: MarkdownIt) -> None:
    """Add citations to the parser. A number that is a link, or that refers to a link definition, is not a citation."""
    md.inline.ruler.after("link", "citation", _cite)
    md.add_render_rule("citation", _draw)


def _cite(state: StateInline, silent: bool) -> bool:
    # When silent, the parser is looking for the end of a link's text, which may contain such a number.
    found = _CITATION.match(state.src, state.pos, state.posMax) if not silent else None
    if found is None or state.linkLevel:
        return False
    pieces = _NUMBERS.split(found[0])
    if not all(state.env["references"].may_cite() for _number in pieces[1::2]):
        return False
    for index, piece in enumerate(pieces if len(pieces) > 3 else ["", found[0]]):
        if index % 2:
            state.push("citation", "span", 0).content = piece
        else:
            state.append_pending(piece)
    state.pos = found.end()
    return True


def _draw(md: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    return f'<span class="cite">{tokens[index].content}</span>'
