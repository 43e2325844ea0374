"""Footnotes in Markdown: `[^label]` refers to the note that a block `[^label]: …` defines.

A note is drawn where it is defined, and notes are numbered in the order of their definitions. So later text changes
neither, and a stream only redraws blocks that refer to a late definition, as with links. The HTML contains no ids,
because two messages could have the same ones. So the page searches for a note within its message.
"""

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

# Notes are stored among the link definitions, and their number under this key. No definition has an empty label.
COUNT = ""

_LABEL = r"\[\^([^\s\[\]\\`]{1,100})\]"
_REFERENCE = re.compile(_LABEL)
_DEFINITION = re.compile(_LABEL + r":[ \t]*")
_INDENT = 4


def use(md: MarkdownIt) -> None:
    """Add footnotes to the parser."""
    md.block.ruler.before("reference", "footnote", _define, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    md.inline.ruler.before("link", "footnote", _refer)
    md.add_render_rule("footnote", _draw_reference)
    md.add_render_rule("footnote_open", _draw_open)
    md.add_render_rule("footnote_close", _draw_close)


def key_of(label: str) -> str:
    """Return the key of a note among the link definitions."""
    return normalizeReference(f"^{label}")


def _define(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    begin = state.bMarks[start] + state.tShift[start]
    found = _DEFINITION.match(state.src, begin, state.eMarks[start])
    if found is None or state.is_code_block(start):
        return False
    if silent:
        return True
    opening = state.push("footnote_open", "div", 1)
    opening.block, opening.meta = True, {"number": _number(state.env, found[1])}
    _parse_note(state, start, end, found.end())
    opening.map = [start, state.line]
    state.push("footnote_close", "div", -1).block = True
    return True


def _number(env: EnvType, label: str) -> int:
    """Return the number of a note. Repeated definitions of a label get the number of the first one."""
    references, key = env["references"], key_of(label)
    known = references.get(key, {}).get("note")
    if known is not None:
        return int(known)
    number = int(references.get(COUNT, 0)) + 1
    references[COUNT] = number
    references[key] = {"href": "", "title": "", "note": number}
    return number


def _parse_note(state: StateBlock, start: int, end: int, position: int) -> None:
    """Parse the rest of the first line, and the indented lines after it, as blocks."""
    before = state.bMarks[start], state.tShift[start], state.sCount[start], state.blkIndent, state.parentType
    state.blkIndent += _INDENT
    state.bMarks[start], state.tShift[start], state.sCount[start] = position, 0, state.blkIndent
    state.parentType = "footnote"
    state.line = start
    state.md.block.tokenize(state, start, end)
    state.line = max(state.line, start + 1)
    state.bMarks[start], state.tShift[start], state.sCount[start], state.blkIndent, state.parentType = before


def _refer(state: StateInline, silent: bool) -> bool:
    found = _REFERENCE.match(state.src, state.pos, state.posMax)
    number = state.env["references"].note(found[1]) if found else None
    if found is None or number is None:
        return False
    if not silent:
        state.push("footnote", "sup", 0).meta = {"number": number}
    state.pos = found.end()
    return True


def _draw_reference(md: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    return (
        '<sup><button type="button" class="footnote-ref" data-action="footnote" aria-describedby="w-footnote">'
        f"{tokens[index].meta['number']}</button></sup>"
    )


def _draw_open(md: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    return (
        '<div class="footnote"><button type="button" class="footnote-back" data-action="footnote-back"'
        f' aria-describedby="w-footnote-back">{tokens[index].meta["number"]}</button><div class="footnote-text">'
    )


def _draw_close(md: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    return "</div></div>"
