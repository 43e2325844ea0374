"""The configured Markdown parser. It turns source into tokens, and tokens into HTML that is not yet sanitized.

It supports CommonMark without raw HTML except some tags, with tables, strikethrough, task lists, alerts, footnotes,
formulas and links for plain addresses. Emphasis also works next to Chinese, Japanese and Korean text. Inline text is
parsed only when it is drawn.
"""

import re
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock, reference
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from chat import addresses
from chat.rendering.budget import Expansions, Meter
from chat.rendering.markdown import citations, emphasis, footnotes, html_tags, math
from chat.rendering.markdown.code_blocks import draw_code, language_of
from chat.rendering.markdown.external_images import placeholder
from chat.rendering.markdown.highlight import Colors, is_colorable

# The parser would drop deeper blocks silently, so they are shown as source.
MAX_NESTING = 40
# Roughly the characters that a reference to a footnote gains as HTML.
FOOTNOTE_LENGTH = 100
# The same for a citation.
CITATION_LENGTH = 25
# In characters. Shorter texts are parsed without counting steps, because they never take long.
SHORT_INLINE = 300
SHORT_SOURCE = 1_000
# The most lines of a link definition.
MAX_DEFINITION_LINES = 10
# In characters. Of a longer inline text that grows, only the new part is drawn.
LONG_INLINE = 1_000
_UNSETTLED = re.compile(r"[\[\\$]")
_INLINE_LINK = re.compile(r"(?<!!)\[[^\[\]\\$`]*\]\([^()\s\\$]+\)")
_MARKS = re.compile(r"[*_~`\[\]]")
# Marks that neither open nor close markup.
_IDLE_MARKS = re.compile(r"(?<= )[*_~]+(?= )|(?<=[A-Za-z0-9])_+(?=[A-Za-z0-9])")
_LINK = re.compile(r"https?://|mailto:", re.IGNORECASE)
_UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*")

References = MutableMapping[str, Any]


@dataclass(slots=True)
class Drawing:
    """The context for drawing tokens: link definitions, whether the HTML is final, and the budgets.

    `inlines` holds the inline texts of this drawing, and `known` those of an earlier one, so that cells and paragraphs
    that have not changed are not drawn again. Without them, a table of 300 rows of yes and no takes 40 ms instead of
    16.
    """

    references: References
    final: bool
    meter: Meter | None = None
    expansions: Expansions = field(default_factory=Expansions)
    colors: Colors = field(default_factory=Colors)
    known: dict[str, str] = field(default_factory=dict)
    inlines: dict[str, str] = field(default_factory=dict)
    growing: "GrowingInline | None" = None

    def inline(self, content: str) -> str:
        """Draw inline text. Text with brackets is never reused: its links count, and definitions may have changed."""
        if self.growing is not None and len(content) >= LONG_INLINE:
            return self.growing.draw(content, self)
        if "[" in content:
            return draw_inline(content, self)
        html = self.inlines.get(content, self.known.get(content))
        self.inlines[content] = draw_inline(content, self) if html is None else html
        return self.inlines[content]


class GrowingInline:
    """A long paragraph that grows. Its beginning is drawn once, up to a place that later text cannot change.

    That place is a space outside all markup. Before it, every mark of emphasis or code is either complete or cannot
    become markup, and nothing else can become a link, a formula or an escape.
    """

    def __init__(self) -> None:
        self._text = self._html = ""

    def draw(self, content: str, drawing: Drawing) -> str:
        """Draw inline text, which usually starts with the text of the last call. Raise BudgetExceeded."""
        if not content.startswith(self._text):
            self._text = self._html = ""
        rest = content[len(self._text) :]
        children = _inline_tokens(rest, drawing)
        html = self._html + _inline_html(children, drawing)
        self._settle(rest, children, drawing)
        return html

    def _settle(self, rest: str, children: Sequence[Token], drawing: Drawing) -> None:
        last = children[-1] if children else _text("")
        space = last.content.rfind(" ")
        if last.type != "text" or last.level or space < 1 or not rest.endswith(last.content):
            return
        text = rest[: len(rest) - len(last.content) + space + 1]
        if _UNSETTLED.search(_INLINE_LINK.sub("", text)) or html_tags.UNFINISHED.search(text):
            return
        if any(map(_is_open, children)):
            return
        self._html += _inline_html([*children[:-1], _text(last.content[: space + 1])], drawing)
        self._text += text


def _is_open(token: Token) -> bool:
    """Return whether a text has a mark that later text may complete."""
    return token.type == "text" and _MARKS.search(_IDLE_MARKS.sub("", token.content)) is not None


class _Definitions:
    """The link definitions that the inline parser looks up, within the limit on expansions."""

    def __init__(self, drawing: Drawing) -> None:
        self._references = drawing.references
        self._expansions = drawing.expansions

    def get(self, label: str, default: Any = None) -> Any:
        definition = self._references.get(label) if label else None  # "" is the key for the number of footnotes
        if (
            definition
            and "note" not in definition
            and self._expansions.add(len(definition["href"]) + len(definition["title"]))
        ):
            return definition
        return default

    def may_cite(self) -> bool:
        """Count a citation, and return whether the limit leaves room for its HTML."""
        return self._expansions.add(CITATION_LENGTH)

    def note(self, label: str) -> int | None:
        """Return the number of a footnote, or None if it is not defined."""
        definition = self._references.get(footnotes.key_of(label))
        if not definition or not self._expansions.add(FOOTNOTE_LENGTH):
            return None
        number: int | None = definition.get("note")
        return number


class _Parser(MarkdownIt):
    """Allows links to http, https and mailto only. Other links stay text."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the name that markdown-it calls
        try:
            return super().normalizeLink(url)
        except Exception:  # the libraries fail on odd addresses in many ways; then it is not a link
            return ""

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802 - the name that markdown-it calls
        return link  # as written, because decoded punycode could make one name look like another

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the name that markdown-it calls
        return _LINK.match(url) is not None


class _Markup(RendererHTML):
    """Parley's markup: code with a header, tables that scroll, and images that load on a click."""

    def render(self, tokens: Sequence[Token], options: OptionsDict, env: EnvType) -> str:
        drawing: Drawing = env["drawing"]
        out = []
        for index, token in enumerate(tokens):
            if token.type == "inline" and index and tokens[index - 1].type == "alert_title_open":
                continue  # the page adds the title in its language
            if token.type == "inline":
                if drawing.meter is not None:
                    drawing.meter.tick(4)
                out.append(drawing.inline(token.content))
            elif token.type in self.rules:
                out.append(self.rules[token.type](tokens, index, options, env))
            else:
                out.append(self.renderToken(tokens, index, options, env))
        return "".join(out)

    def renderToken(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: N802 - the name that markdown-it calls
        """Draw a tag without the line break after it, because browsers keep a text node for each line break."""
        return super().renderToken(tokens, idx, options, env).strip("\n")

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return _code(tokens[idx].content, language_of(tokens[idx]), env["drawing"])

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return _code(tokens[idx].content, "", env["drawing"])

    def code_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Draw inline code. Its direction is fixed, so that it does not affect the direction of the text around it."""
        return f'<code dir="ltr">{escapeHtml(tokens[idx].content)}</code>'

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Draw a button that loads an external image. Inside a link, draw only the image's name."""
        token = tokens[idx]
        source = str(token.attrs["src"])
        alt = self.renderInlineAsText(token.children, options, env)
        is_in_link = sum(before.nesting for before in tokens[:idx] if before.tag == "a") > 0
        if is_in_link or not source.lower().startswith("http"):
            return f'<span class="ext-img">{escapeHtml(alt or source)}</span>'
        return placeholder(source, alt)

    def list_item_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        if "checked" not in token.meta:
            return self.renderToken(tokens, idx, options, env)
        checked = ' checked=""' if token.meta["checked"] else ""
        return f'<li class="task"><input type="checkbox" disabled="" aria-labelledby="w-task"{checked}> '

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return _TABLE_OPEN

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div></div>"

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        style = str(tokens[idx].attrs.get("style", ""))  # text-align:…; a class, because the CSP forbids inline styles
        return f'<{tokens[idx].tag} class="{style[11:]}">' if style else f"<{tokens[idx].tag}>"

    td_open = th_open

    def alert_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        kind = tokens[idx].meta["kind"].lower()
        return f'<div class="alert alert-{kind}" role="group" aria-labelledby="w-{kind}">'

    def alert_title_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return ""

    alert_title_close = alert_title_open


# The HTML after the table must only close tags, because tail.py relies on that.
_TABLE_OPEN = (
    '<div class="table"><button type="button" class="csv" data-action="copy-csv" aria-labelledby="w-csv"></button>'
    '<div class="table-wrap" tabindex="0" role="group" aria-labelledby="w-table"><table>'
)


def _code(code: str, language: str, drawing: Drawing) -> str:
    return draw_code(code, language, final=drawing.final, colors=drawing.colors, meter=drawing.meter)


def _make_parser(*, counts_steps: bool) -> _Parser:
    options = {"html": False, "xhtmlOut": False, "tasklists": True, "alerts": True, "maxNesting": MAX_NESTING}
    parser = _Parser("commonmark", options, renderer_cls=_Markup)
    parser.enable(["table", "strikethrough"])
    parser.block.ruler.at("reference", _define)
    emphasis.use(parser)
    math.use(parser)
    footnotes.use(parser)
    citations.use(parser)
    html_tags.use(parser)
    parser.core.ruler.push("addresses", _link_addresses)
    if counts_steps:
        within = ["paragraph", "reference", "blockquote", "list"]
        parser.block.ruler.before("table", "steps", _count_line, {"alt": within})
        parser.inline.ruler.before("text", "steps", _count_place)
    return parser


def _define(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a link definition.

    Its title must not be in a line that follows its list, quote or footnote, or the underline of a heading. Such a line
    would change finished blocks of a growing text.
    """
    if not state.src.startswith("[", state.bMarks[start] + state.tShift[start]):
        return False
    before = state.lineMax
    limit = min(before, start + MAX_DEFINITION_LINES)
    state.lineMax = next((line for line in range(start + 1, limit) if _ends_definition(state, line)), limit)
    try:
        return reference(state, start, end, silent)
    finally:
        state.lineMax = before


def _ends_definition(state: StateBlock, line: int) -> bool:
    if state.isEmpty(line) or state.sCount[line] < state.blkIndent:
        return True
    begin = state.bMarks[line] + state.tShift[line]
    return not state.is_code_block(line) and _UNDERLINE.fullmatch(state.src, begin, state.eMarks[line]) is not None


def _link_addresses(state: StateCore) -> None:
    """Link the addresses in plain text, but not in code, formulas or the text of other links."""
    for token in state.tokens:
        if token.children and any(addresses.MARK.search(child.content) for child in token.children):
            token.children = list(_with_links(token.children, state.md, state.env.get("meter")))


def _with_links(tokens: Sequence[Token], md: MarkdownIt, meter: Meter | None) -> Iterator[Token]:
    links_around = 0
    for token in tokens:
        if token.tag == "a":
            links_around += token.nesting
        if token.type != "text" or links_around:
            yield token
            continue
        before = 0
        for address in addresses.find(token.content):
            if meter is not None:
                meter.tick(4)
            url = md.normalizeLink(address.url)
            if not md.validateLink(url):
                continue
            yield _text(token.content[before : address.start])
            yield Token("link_open", "a", 1, attrs={"href": url})
            yield _text(token.content[address.start : address.end])
            yield Token("link_close", "a", -1)
            before = address.end
        yield _text(token.content[before:])


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _count_line(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Count a line or table row. This is a rule that never matches."""
    meter: Meter = state.env["meter"]
    meter.tick(8)
    return False


def _count_place(state: StateInline, silent: bool) -> bool:
    """Count a position in inline text. This is a rule that never matches."""
    meter: Meter = state.env["meter"]
    meter.tick()
    return False


_md = _make_parser(counts_steps=False)
_metered = _make_parser(counts_steps=True)


def parse(source: str, references: References, meter: Meter | None = None) -> list[Token]:
    """Parse the blocks of normalized source, and add its link definitions to `references`. Raise BudgetExceeded."""
    tokens: list[Token] = []
    if meter is None or (len(source) < SHORT_SOURCE and "|" not in source):
        _md.block.parse(source, _md, {"references": references}, tokens)
    else:
        _metered.block.parse(source, _metered, {"references": references, "meter": meter}, tokens)
    return tokens


def _env(drawing: Drawing, /, **more: object) -> EnvType:
    return {"meter": drawing.meter, "final": drawing.final, **more}


def top_level(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield the tokens of each top-level block. The map of a block's first token is the range of its lines."""
    start = 0
    for index, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            yield tokens[start : index + 1]
            start = index + 1


def count_code(tokens: Sequence[Token], colors: Colors) -> None:
    """Count the code of blocks that can be highlighted, as drawing them does."""
    for token in tokens:
        if token.type == "fence" and is_colorable(token.content, language := language_of(token)):
            colors.allow(token.content, language)


def draw(tokens: Sequence[Token], drawing: Drawing) -> str:
    """Draw tokens as HTML. Raise ValueError if they nest too deeply."""
    if any(token.level >= MAX_NESTING - 1 for token in tokens):
        raise ValueError("blocks nest too deeply")
    html: str = _md.renderer.render(tokens, _md.options, _env(drawing, drawing=drawing))
    return html


def draw_inline(content: str, drawing: Drawing) -> str:
    """Draw the content of one paragraph, heading or cell. Raise BudgetExceeded."""
    return _inline_html(_inline_tokens(content, drawing), drawing)


def _inline_tokens(content: str, drawing: Drawing) -> list[Token]:
    parser, env = _md, _env(drawing, references=_Definitions(drawing))
    if drawing.meter is not None:
        drawing.meter.check()
        parser = _metered if len(content) >= SHORT_INLINE else _md
    return parser.parseInline(content, env)[0].children or []


def _inline_html(children: Sequence[Token], drawing: Drawing) -> str:
    renderer: Any = _md.renderer
    html: str = renderer.renderInline(children, _md.options, _env(drawing, references=_Definitions(drawing)))
    return html
