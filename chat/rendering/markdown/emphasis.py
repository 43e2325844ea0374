"""Emphasis and strikethrough next to Chinese, Japanese and Korean text.

CommonMark decides by spaces and punctuation where emphasis starts and ends. These languages have no spaces between
words, so a mark between a character and punctuation would do neither, as in `**“你好”**世界`
(https://github.com/commonmark/commonmark-spec/issues/650). Next to such a character, only a space counts, as in
https://github.com/tats-u/markdown-cjk-friendly. Underscores keep CommonMark's rule.
"""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline, emphasis, strikethrough

# Letters and punctuation of Chinese, Japanese and Korean, with full-width forms.
_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u2fff\u3001-\u33ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\ufe30-\ufe4f\uff01-\uffef\U0001b000-\U0001b16f\U0001f200-\U0001f2ff\U00020000-\U0003ffff]"
)


def use(md: MarkdownIt) -> None:
    """Replace the parser's rules for emphasis and strikethrough."""
    md.inline.ruler.at("emphasis", _emphasize)
    md.inline.ruler.at("strikethrough", _strike)


def _emphasize(state: StateInline, silent: bool) -> bool:
    start, known = state.pos, len(state.delimiters)
    if not emphasis.tokenize(state, silent):
        return False
    if state.src[start] == "*":
        _widen(state, start, known)
    return True


def _strike(state: StateInline, silent: bool) -> bool:
    start, known = state.pos, len(state.delimiters)
    if not strikethrough.tokenize(state, silent):
        return False
    _widen(state, start, known)
    return True


def _widen(state: StateInline, start: int, known: int) -> None:
    """Let the marks from `start` on, whose delimiters follow the `known` ones, open and close markup if they may."""
    before = state.src[start - 1] if start else " "
    after = state.src[state.pos] if state.pos < state.posMax else " "
    if _CJK.match(before) or _CJK.match(after):
        for delimiter in state.delimiters[known:]:
            delimiter.open |= not after.isspace()
            delimiter.close |= not before.isspace()
