"""The one configured Markdown parser: from source to tokens, and from tokens to our markup (not yet sanitised).

CommonMark without raw HTML, plus tables, strikethrough, task lists, formulas and links for plain addresses. Inline
text is parsed only when it is drawn, so that a growing message can keep what has not changed.
"""

import re
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml, unescapeAll
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from chat.rendering.budget import UNLIMITED, Expansions, Meter
from chat.rendering.markdown import math
from chat.rendering.markdown.external_images import place
from chat.rendering.markdown.highlight import Coloured, Colours, highlight, is_colourable, known_as
from chat.rendering.markdown.languages import label
from chat.rendering.text import addresses

# Deeper blocks would be dropped by the parser without a word; they are shown as source instead.
MAX_NESTING = 40
MAX_LABEL = 40
# Shorter texts cannot take long, whatever they hold, and are parsed without counting steps.
SHORT_INLINE = 300
SHORT_SOURCE = 1_000
_LINK = re.compile(r"https?://|mailto:", re.IGNORECASE)

References = MutableMapping[str, Any]


@dataclass(slots=True)
class Drawing:
    """What tokens are drawn with: link definitions, whether for good, what the last drawing can lend, the budgets."""

    references: References
    final: bool
    known: dict[str, str] = field(default_factory=dict)
    inlines: dict[str, str] = field(default_factory=dict)
    meter: Meter | None = None
    expansions: Expansions = field(default_factory=Expansions)
    expanded: dict[str, int] = field(default_factory=dict)
    colours: Colours = field(default_factory=Colours)

    def inline(self, content: str) -> str:
        """Draw inline text, or take it from the last drawing (not with brackets: definitions may have changed)."""
        drawn = self.inlines.get(content)
        if drawn is None and "[" not in content:
            drawn = self.known.get(content)
        if drawn is not None and not self.expansions.add(self.expanded.get(content, 0)):
            drawn = None
        if drawn is None:
            before = self.expansions.added
            drawn = draw_inline(content, self)
            self.expanded[content] = self.expansions.added - before
        self.inlines[content] = drawn
        return drawn


class _Definitions:
    """The link definitions as the parser of inline text asks for them: as long as they may expand."""

    def __init__(self, drawing: Drawing) -> None:
        self._references = drawing.references
        self._expansions = drawing.expansions

    def get(self, label: str, default: Any = None) -> Any:
        definition = self._references.get(label)
        if definition and self._expansions.add(len(definition["href"]) + len(definition["title"])):
            return definition
        return default


class _Parser(MarkdownIt):
    """Links only to where a person may safely be sent; anything else stays the text that it was."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the name that markdown-it calls
        try:
            return super().normalizeLink(url)
        except Exception:  # whatever an address can break in the libraries below: then it is no link
            return ""

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802 - the name that markdown-it calls
        return link  # as written: decoding punycode would let one name pass for another

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the name that markdown-it calls
        return _LINK.match(url) is not None


class _Markup(RendererHTML):
    """The markup of our own: code with a head, tables that scroll, pictures that wait for a click."""

    def render(self, tokens: Sequence[Token], options: OptionsDict, env: EnvType) -> str:
        drawing: Drawing = env["drawing"]
        out = []
        for index, token in enumerate(tokens):
            if token.type == "inline":
                if drawing.meter is not None:
                    drawing.meter.tick(4)
                out.append(drawing.inline(token.content))
            elif token.type in self.rules:
                out.append(self.rules[token.type](tokens, index, options, env))
            else:
                out.append(self.renderToken(tokens, index, options, env))
        return "".join(out)

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return _code(tokens[idx].content, _language(tokens[idx]), env["drawing"])

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return _code(tokens[idx].content, "", env["drawing"])

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Never load a picture from elsewhere by itself: offer it, or name it where a link already surrounds it."""
        token = tokens[idx]
        source = str(token.attrs["src"])
        alt = self.renderInlineAsText(token.children, options, env)
        if _inside_link(tokens[:idx]) or not source.lower().startswith("http"):
            return f'<span class="ext-img">{escapeHtml(alt or source)}</span>'
        return place(source, alt)

    def list_item_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        if "checked" not in token.meta:
            return self.renderToken(tokens, idx, options, env)
        checked = ' checked=""' if token.meta["checked"] else ""
        return f'<li class="task"><input type="checkbox" disabled="" aria-labelledby="w-task"{checked}> '

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<div class="table-wrap" tabindex="0" role="group" aria-labelledby="w-table"><table>\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div>\n"

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        style = str(tokens[idx].attrs.get("style", ""))  # text-align:…, an inline style that the CSP forbids
        return f'<{tokens[idx].tag} class="{style[11:]}">' if style else f"<{tokens[idx].tag}>"

    td_open = th_open


def _inside_link(before: Sequence[Token]) -> bool:
    return sum(token.nesting for token in before if token.tag == "a") > 0


# Bodies are the same for readers of all languages: buttons take their names from hidden words of the page.
_CODE_BUTTONS = (
    '<button type="button" class="wrap" data-action="wrap-code" aria-labelledby="w-wrap"></button>'
    '<button type="button" class="copy" data-action="copy-code" aria-labelledby="w-copy"></button>'
)


def _language(fence: Token) -> str:
    return next(iter(unescapeAll(fence.info).split(maxsplit=1)), "")


def _code(code: str, language: str, drawing: Drawing) -> str:
    has_colours = drawing.final and is_colourable(code, language) and drawing.colours.allow(code, language)
    body = (has_colours and highlight(code, language, drawing.meter)) or escapeHtml(code)
    name = escapeHtml(label(language[:MAX_LABEL], known_as(language)))
    return (
        f'<div class="code"><div class="code-head"><span class="code-lang">{name}</span>{_CODE_BUTTONS}</div>'
        f'<pre tabindex="0"><code class="hl">{body}</code></pre></div>\n'
    )


def _make_parser(*, counts_steps: bool) -> _Parser:
    options = {"html": False, "xhtmlOut": False, "tasklists": True, "maxNesting": MAX_NESTING}
    parser = _Parser("commonmark", options, renderer_cls=_Markup)
    parser.enable(["table", "strikethrough"])
    math.use(parser)
    parser.core.ruler.push("addresses", _link_addresses)
    if counts_steps:
        within = ["paragraph", "reference", "blockquote", "list"]
        parser.block.ruler.before("table", "steps", _count_line, {"alt": within})
        parser.inline.ruler.before("text", "steps", _count_place)
    return parser


def _link_addresses(state: StateCore) -> None:
    """Make links of the addresses in plain text; code, formulas and the text of other links stay as they are."""
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
    """A rule that never applies: it is asked at each line, and at each row of a table, which may be wide."""
    meter: Meter = state.env["meter"]
    meter.tick(8)
    return False


def _count_place(state: StateInline, silent: bool) -> bool:
    """A rule that never applies: it is asked at each place of inline text, each time that the parser comes there."""
    meter: Meter = state.env["meter"]
    meter.tick()
    return False


_md = _make_parser(counts_steps=False)
_metered = _make_parser(counts_steps=True)


def parse(source: str, references: References, meter: Meter | None = None) -> list[Token]:
    """Parse the blocks of normalised source; link definitions are added to the references. Raises TooDear."""
    tokens: list[Token] = []
    if meter is None or (len(source) < SHORT_SOURCE and "|" not in source):
        _md.block.parse(source, _md, {"references": references}, tokens)
    else:
        _metered.block.parse(source, _metered, {"references": references, "meter": meter}, tokens)
    return tokens


def _env(drawing: Drawing, /, **more: object) -> EnvType:
    return {"meter": drawing.meter, "final": drawing.final, **more}


def top_level(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Split a document's tokens into those of each top-level block; the first token's map is the block's lines."""
    start = 0
    for index, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            yield tokens[start : index + 1]
            start = index + 1


def coloured_after(tokens: Sequence[Token], spent: Coloured) -> Coloured:
    """Count the code that gets colours up to the end of a block, `spent` before it."""
    colours = Colours(UNLIMITED, spent)
    for token in tokens:
        if token.type == "fence" and is_colourable(token.content, language := _language(token)):
            colours.allow(token.content, language)
    return colours.spent


def draw(tokens: Sequence[Token], drawing: Drawing) -> str:
    """Draw tokens as HTML; raises ValueError if they nest too deeply to be shown as they are."""
    if any(token.level >= MAX_NESTING - 1 for token in tokens):
        raise ValueError("blocks nest too deeply")
    html: str = _md.renderer.render(tokens, _md.options, _env(drawing, drawing=drawing))
    return html


def draw_inline(content: str, drawing: Drawing) -> str:
    """Draw the content of one paragraph, heading or cell. Raises TooDear."""
    parser, env = _md, _env(drawing, references=_Definitions(drawing))
    if drawing.meter is not None:
        drawing.meter.check()
        parser = _metered if len(content) >= SHORT_INLINE else _md
    children = parser.parseInline(content, env)[0].children or []
    renderer: Any = _md.renderer
    html: str = renderer.renderInline(children, _md.options, env)
    return html
