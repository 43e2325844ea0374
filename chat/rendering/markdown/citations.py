"""Numbers in square brackets, as [1], which may cite a page.

The HTML is the same for each message. The page makes a chip of those for which the message has a source
(`static/js/messages/citations.js`), so that a growing text needs no other rules than its own.
"""

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

_CITATION = re.compile(r"\[([1-9][0-9]{0,2})\]")


def use(md: MarkdownIt) -> None:
    """Add citations to the parser. What is a link, or a reference to a definition, is none."""
    md.inline.ruler.after("link", "citation", _cite)
    md.add_render_rule("citation", _draw)


def _cite(state: StateInline, silent: bool) -> bool:
    # Silent: the end of the text of a link is looked for, which may have such a number in it.
    found = _CITATION.match(state.src, state.pos, state.posMax) if not silent else None
    if found is None or state.linkLevel or not state.env["references"].may_cite():
        return False
    state.push("citation", "span", 0).content = found[0]
    state.pos = found.end()
    return True


def _draw(md: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    return f'<span class="cite">{tokens[index].content}</span>'
