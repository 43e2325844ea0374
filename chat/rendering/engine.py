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
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from chat.rendering import addresses, formulas
from chat.rendering.highlight import highlight, known_as
from chat.rendering.languages import label
from chat.rendering.pictures import place

# Deeper blocks would be dropped by the parser without a word; they are shown as source instead.
MAX_NESTING = 40
MAX_LABEL = 40
_LINK = re.compile(r"https?://|mailto:", re.IGNORECASE)

References = MutableMapping[str, Any]


@dataclass(frozen=True)
class Drawing:
    """What tokens are drawn with: link definitions, whether for good, and what the last drawing can lend."""

    references: References
    final: bool
    known: dict[str, str] = field(default_factory=dict)
    inlines: dict[str, str] = field(default_factory=dict)

    def inline(self, content: str) -> str:
        """Draw inline text, or take it from the last drawing (not with brackets: definitions may have changed)."""
        drawn = self.inlines.get(content)
        if drawn is None and "[" not in content:
            drawn = self.known.get(content)
        self.inlines[content] = drawn = draw_inline(content, self.references) if drawn is None else drawn
        return drawn


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
                out.append(drawing.inline(token.content))
            elif token.type in self.rules:
                out.append(self.rules[token.type](tokens, index, options, env))
            else:
                out.append(self.renderToken(tokens, index, options, env))
        return "".join(out)

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        words = unescapeAll(tokens[idx].info).split(maxsplit=1)
        return _code(tokens[idx].content, words[0] if words else "", final=env["drawing"].final)

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return _code(tokens[idx].content, "", final=False)

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


def _code(code: str, language: str, *, final: bool) -> str:
    body = (final and highlight(code, language)) or escapeHtml(code)
    name = escapeHtml(label(language[:MAX_LABEL], known_as(language)))
    return (
        f'<div class="code"><div class="code-head"><span class="code-lang">{name}</span>{_CODE_BUTTONS}</div>'
        f'<pre tabindex="0"><code class="hl">{body}</code></pre></div>\n'
    )


def _link_addresses(state: StateCore) -> None:
    """Make links of the addresses in plain text; code, formulas and the text of other links stay as they are."""
    for token in state.tokens:
        if token.children and any(addresses.MARK.search(child.content) for child in token.children):
            token.children = list(_with_links(token.children, state.md))


def _with_links(tokens: Sequence[Token], md: MarkdownIt) -> Iterator[Token]:
    links_around = 0
    for token in tokens:
        if token.tag == "a":
            links_around += token.nesting
        if token.type != "text" or links_around:
            yield token
            continue
        before = 0
        for address in addresses.find(token.content):
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


_md = _Parser(
    "commonmark",
    {"html": False, "xhtmlOut": False, "tasklists": True, "maxNesting": MAX_NESTING},
    renderer_cls=_Markup,
).enable(["table", "strikethrough"])
formulas.use(_md)
_md.core.ruler.push("addresses", _link_addresses)


def parse(source: str, references: References) -> list[Token]:
    """Parse the blocks of normalised source; link definitions are added to the references."""
    tokens: list[Token] = []
    _md.block.parse(source, _md, {"references": references}, tokens)
    return tokens


def top_level(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Split a document's tokens into those of each top-level block; the first token's map is the block's lines."""
    start = 0
    for index, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            yield tokens[start : index + 1]
            start = index + 1


def draw(tokens: Sequence[Token], drawing: Drawing) -> str:
    """Draw tokens as HTML; raises ValueError if they nest too deeply to be shown as they are."""
    if any(token.level >= MAX_NESTING - 1 for token in tokens):
        raise ValueError("blocks nest too deeply")
    html: str = _md.renderer.render(tokens, _md.options, {"drawing": drawing})
    return html


def draw_inline(content: str, references: References) -> str:
    """Draw the content of one paragraph, heading or cell."""
    children = _md.parseInline(content, {"references": references})[0].children or []
    renderer: Any = _md.renderer
    html: str = renderer.renderInline(children, _md.options, {})
    return html
