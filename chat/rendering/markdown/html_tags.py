"""The HTML tags that Markdown has no syntax for, and that models therefore write: `<br>`, `<sub>` and `<sup>`.

All other HTML stays text. A cell of a table can have several lines only with `<br>`.
"""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline

_BREAK = re.compile(r"<br */?>", re.IGNORECASE)
# Code, formulas and escapes could contain the closing tag, so a text with them is not raised or lowered.
_INSIDE = r"[^<>`$\\\n]"
_SCRIPT = re.compile(rf"<(su[bp])>({_INSIDE}{{1,80}})</\1>", re.IGNORECASE)
# The end of a text after which a tag may continue.
UNFINISHED = re.compile(rf"(?:<br *|<su[bp]>{_INSIDE}{{0,80}})\Z", re.IGNORECASE)


def use(md: MarkdownIt) -> None:
    """Add the tags to the parser."""
    md.inline.ruler.after("autolink", "html_tag", _tag)


def _tag(state: StateInline, silent: bool) -> bool:
    found = _BREAK.match(state.src, state.pos, state.posMax)
    if found:
        if not silent:
            state.push("hardbreak", "br", 0)
    elif not silent and (found := _SCRIPT.match(state.src, state.pos, state.posMax)):
        _parse_script(state, found)  # silently, the parser looks for links in the text of a link, also between tags
    else:
        return False
    state.pos = found.end()
    return True


def _parse_script(state: StateInline, found: re.Match[str]) -> None:
    """Parse the text between two tags."""
    tag, end = found[1].lower(), state.posMax
    state.push(f"{tag}_open", tag, 1)
    state.pos, state.posMax = found.span(2)
    state.md.inline.tokenize(state)
    state.posMax = end
    state.push(f"{tag}_close", tag, -1)
