r"""Formulas in Markdown.

`$$…$$` and `\[…\]` are on lines of their own, `\(…\)` and `$…$` within a line. Like a fence, a block begins and ends
with its own lines, or ends at a blank line, so that a growing text can be cut after it.
"""

import re
from collections.abc import Sequence
from typing import cast

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from chat.rendering.budget import BudgetExceeded, Meter
from chat.rendering.markdown.mathml import mathml

# In characters. Converting a longer formula may take more than 30 ms, and the time grows with the square of the length.
MAX_LENGTH_AT_ONCE = 1_500

_CLOSING = {"$$": "$$", "\\[": "\\]"}
# Delimiters of formulas. Not formulas: $5 and $10, US$ 6, $HOME/$USER.
_DOLLAR = re.compile(r"\$(?![\s$])((?:\\.|[^\\$`\n])+?)(?<!\s)\$(?=(?:st|nd|rd|th)\b|[^0-9A-Za-z$]|\Z)")
_DOLLARS = re.compile(r"\$\$((?:\\.|[^\\$`])+?)\$\$(?!\$)", re.DOTALL)
_ROUND = re.compile(r"\\\(((?:[^\\`]|\\[^()])+?)\\\)", re.DOTALL)
_SQUARE = re.compile(r"\\\[((?:[^\\`]|\\[^\[\]])+?)\\\]", re.DOTALL)
_WORDS = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}\s+[A-Za-z]{2,}|(?<![A-Za-z])[A-Za-z]{3,}\s+[A-Za-z]+\s")
_NAMED = re.compile(r"\\[A-Za-z]+\s*(?:\{[^{}]*\})?")
_CODE = re.compile(r"(?<!`)(`+)(?!`)[^`\n]+\1(?!`)")
_TWO_DOLLARS = re.compile(r"(?<![\\$])\$\$(?!\$)")
# By the closing delimiter of a block. A command such as \\] does not close.
_CLOSED = {"$$": re.compile(r"\$\$"), "\\]": re.compile(r"(?<!\\)(?:\\\\)*\\\]")}
_SIGN = re.compile(r"[\\^_=+<>/{}|]|^\s.*\s$", re.DOTALL)


def use(md: MarkdownIt) -> None:
    """Add formulas to the parser."""
    md.block.ruler.before("fence", "formula", _block, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    md.inline.ruler.before("escape", "formula", _inline)
    md.add_render_rule("formula_block", _draw_block)
    md.add_render_rule("formula_open", _draw_nothing)
    md.add_render_rule("formula_close", _draw_nothing)
    md.add_render_rule("formula", _draw_inline)


def _block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    begin = state.bMarks[start] + state.tShift[start]
    opening = state.src[begin : begin + 2]
    closing = _CLOSING.get(opening)
    if closing is None or state.is_code_block(start):
        return False
    first = state.src[begin + 2 : state.eMarks[start]].rstrip()
    if not _opens(first, opening, closing):
        return False
    is_whole = closing in first
    if silent:
        return is_whole or opening != "$$" or not _is_open(state, start)
    line = start + 1 if is_whole else _end(state, start, end, closing)
    formula, text = _parted(state.getLines(start, line, state.blkIndent, False).strip(), closing)
    state.line = line
    if text:
        _push_with_text(state, formula, text, start)
    else:
        _push(state, formula, start)
    return True


def _is_open(state: StateBlock, start: int) -> bool:
    """Return whether the paragraph before a line has a formula that this line ends.

    The number of dollars is kept for the next line, so that a long paragraph is not searched for each of its lines.
    """
    if state.parentType != "paragraph":
        return False
    paragraph, line, count = cast("tuple[int, int, int]", state.env.get("formulas", (-1, 0, 0)))
    if paragraph != state.line or line > start:
        line, count = state.line, 0
    count += len(_TWO_DOLLARS.findall(_CODE.sub("", state.src[state.bMarks[line] : state.bMarks[start]])))
    state.env["formulas"] = state.line, start, count
    return count % 2 == 1


def _parted(source: str, closing: str) -> tuple[str, str]:
    """Return the source of a block up to the closing in its last line, and the text behind that."""
    last = source.rfind("\n") + 1
    found = _CLOSED[closing].search(source, last) if last else None
    return (source[: found.end()], source[found.end() :].strip()) if found else (source, "")


def _push(state: StateBlock, formula: str, start: int) -> None:
    token = state.push("formula_block", "div", 0)
    token.block, token.map, token.markup = True, [start, state.line], formula[:2]
    token.content = formula


def _push_with_text(state: StateBlock, formula: str, text: str, start: int) -> None:
    """Add a formula and a paragraph with the text behind it. They are one block, because they share a line."""
    lines = [start, state.line]
    state.push("formula_open", "", 1).map = lines
    _push(state, formula, start)
    state.push("paragraph_open", "p", 1).map = lines
    inline = state.push("inline", "", 0)
    inline.content, inline.map, inline.children = text, lines, []
    state.push("paragraph_close", "p", -1)
    state.push("formula_close", "", -1)


def _opens(first: str, opening: str, closing: str) -> bool:
    """Return whether the rest of a line starts a block: it is a whole formula, empty, or the start of a formula."""
    inner, found, behind = first.partition(closing)
    if found:
        return not behind and bool(inner.strip()) and (opening == "$$" or _SIGN.search(inner) is not None)
    return not first.strip() or first.lstrip().startswith("\\")


def _end(state: StateBlock, start: int, end: int, closing: str) -> int:
    for line in range(start + 1, end):
        if state.isEmpty(line) or state.sCount[line] < state.blkIndent:
            return line
        text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
        if _CLOSED[closing].search(text):
            return line + 1
    return end


def _draw_nothing(md: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    return ""


def _draw_block(md: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    inner, closing = token.content[2:], _CLOSING[token.markup]
    closed = inner.endswith(closing)
    drawn = _mathml(inner.removesuffix(closing).strip(), env, display=True) if closed else None
    shown = drawn or _source(token.content)
    return f'<div class="formula" tabindex="0" role="group" aria-labelledby="w-formula">{shown}</div>'


def _inline(state: StateInline, silent: bool) -> bool:
    found = _found(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        token = state.push("formula", "math", 0)
        token.content, token.markup = found[1], found[0]
        token.hidden = found[0].startswith(("$$", "\\["))  # displayed on its own line
    state.pos = found.end()
    return True


def _found(source: str, at: int, end: int) -> re.Match[str] | None:
    match source[at : at + 2]:
        case "$$":
            return _DOLLARS.match(source, at, end)
        case "\\(":
            return _unless_prose(_ROUND.match(source, at, end))
        case "\\[":
            found = _SQUARE.match(source, at, end)
            return found if found and _SIGN.search(found[1]) else None
        case two if two[:1] == "$":
            before = source[at - 1 : at] if at else ""
            follows_word = before in ("$", "\\") or (before.isascii() and before.isalnum())
            return None if follows_word else _unless_prose(_DOLLAR.match(source, at, end))
    return None


def _unless_prose(found: re.Match[str] | None) -> re.Match[str] | None:
    if found is None or not found[1].strip():
        return None
    return None if _WORDS.search(_NAMED.sub("+", found[1])) else found


def _draw_inline(md: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    return _mathml(token.content.strip(), env, display=token.hidden) or _source(token.markup)


def _mathml(source: str, env: EnvType, *, display: bool) -> str | None:
    """Convert a formula. A long one is shown as source while it streams, and raises BudgetExceeded when it is final."""
    meter: Meter | None = env["meter"]
    if meter is not None and meter.is_limited:
        meter.check()
        if len(source) > MAX_LENGTH_AT_ONCE:
            if env["final"]:
                raise BudgetExceeded
            return None
    return mathml(source, display=display)


def _source(text: str) -> str:
    return f'<code class="tex">{escapeHtml(text)}</code>'
