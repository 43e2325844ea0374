"""The extraction of readable text from the answer of a web server.

`read` runs in a child process with limits (`agents.toolbox.web_fetch`), because a hostile page can make Python's HTML
parser take quadratic time. So this module imports nothing of the toolbox.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from urllib.parse import urljoin

from bs4 import BeautifulSoup, Tag
from bs4.dammit import UnicodeDammit
from markdownify import MarkdownConverter

# Elements that are not part of the page's text.
_CLUTTER = ["script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "nav", "footer", "aside"]
_CLUTTER += ["form", "button", "dialog", "link", "meta"]
# If <main> and <article> have less text than this, the whole page is read.
_MIN_MAIN_CHARACTERS = 200

# The most characters of a page that are parsed, without scripts and styles. This takes about two seconds.
MAX_HTML = 500_000
_CUT = "\n\n[The rest of the page is left out.]"
_UNSEEN = re.compile(r"<(script|style|svg)\b", re.IGNORECASE)
_UNSEEN_ENDS = {name: re.compile(rf"</{name}\b[^<>]*>", re.IGNORECASE) for name in ("script", "style", "svg")}

_XML_DECLARATION = re.compile(r"^\s*<\?xml[^>]*>")
_BLANK_LINES = re.compile(r"\n\s*\n\s*\n+")
_TAGS = re.compile(r"<[^>]*>")
_HTML_TYPES = ("text/html", "application/xhtml+xml")


def read(content_type: str, charset: str, body: bytes, url: str, start: int, most: int) -> Iterator[str]:
    """Yield the title, the length of the text in characters, and up to `most` characters of it from `start` on."""
    title, text = readable(content_type, charset or None, body, url)
    yield title
    yield str(len(text))
    yield text[start : start + most]


def readable(content_type: str, charset: str | None, data: bytes, url: str) -> tuple[str, str]:
    """Return (title, text). HTML becomes Markdown with absolute links; other text is not changed."""
    html = content_type in _HTML_TYPES or (not content_type and data.lstrip()[:1] == b"<")
    text = _decoded(data, charset, html)
    if not html or "<" not in text:
        return "", text.strip()
    text = _without_invisible(text)
    text, rest = text[:MAX_HTML], text[MAX_HTML:]
    title, markdown = _parse(text, url)
    return title, markdown + _CUT if rest else markdown


def _decoded(data: bytes, charset: str | None, html: bool) -> str:
    try:
        known = [codecs.lookup(charset).name] if charset else []
    except LookupError:
        known = []
    text = UnicodeDammit(data, known_definite_encodings=known, is_html=html).unicode_markup
    return text if text is not None else data.decode(errors="replace")


def _without_invisible(html: str) -> str:
    """Return HTML without scripts, styles and SVG, which are long. This takes linear time."""
    parts, at, unclosed = list[str](), 0, set[str]()
    for opening in _UNSEEN.finditer(html):
        name = opening[1].lower()
        if opening.start() < at or name in unclosed:
            continue
        closing = _UNSEEN_ENDS[name].search(html, opening.end())
        if closing is None:
            unclosed.add(name)
        else:
            parts.append(html[at : opening.start()])
            at = closing.end()
    return "".join([*parts, html[at:]])


def _parse(html: str, url: str) -> tuple[str, str]:
    try:
        soup = BeautifulSoup(_XML_DECLARATION.sub("", html, count=1), "html.parser")
        title = soup.title.get_text(" ", strip=True) if soup.title else ""
        for element in soup.find_all([*_CLUTTER, "title"]):
            element.decompose()
        _complete_links(soup, url)
        markdown = _Converter(heading_style="ATX", bullets="-").convert_soup(_main(soup))
    except RecursionError:  # nested more deeply than normal pages
        title, markdown = "", _TAGS.sub(" ", html)
    return title, _BLANK_LINES.sub("\n\n", markdown).strip()


def _main(soup: BeautifulSoup) -> Tag:
    for candidate in (soup.find("main"), soup.find("article")):
        if isinstance(candidate, Tag) and len(candidate.get_text(strip=True)) >= _MIN_MAIN_CHARACTERS:
            return candidate
    return soup


def _complete_links(soup: BeautifulSoup, url: str) -> None:
    for link in soup.find_all("a", href=True):
        try:
            link["href"] = urljoin(url, str(link["href"]))
        except ValueError:
            del link["href"]


class _Converter(MarkdownConverter):
    """A converter that replaces pictures by their descriptions, because text models cannot see pictures."""

    def convert_img(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return str(el.get("alt") or "")
