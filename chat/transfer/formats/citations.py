"""Citations in the texts of other products. Their markers become Markdown links.

ChatGPT puts markers between private-use characters or in lenticular brackets, and their sources into the message's
metadata. See https://github.com/danny-avila/LibreChat (api/server/utils/import) and
https://github.com/mohamed-chs/convoviz. Claude stores the position and source of each citation in a text block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from agents.messages import Json
from chat.transfer.formats.parsed import Loss, Losses, as_dict, as_list, as_text

Link = tuple[str, str]
MAX_REFERENCES = 2_000
MAX_TITLE_LENGTH = 200
MAX_ADDRESS_LENGTH = 2_000

_MARKER = re.compile("\ue200[^\ue200\ue201]{0,5000}\ue201|【[^【】†]{0,200}†[^【】]{0,200}】")
# A widget, which can contain a formula: JSON with its name and content.
_WIDGET = re.compile("\ue200genui\ue202([^\ue200\ue201]{0,5000})\ue201")
_LINE_START = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?")
_PRIVATE = re.compile("[\ue200-\ue206]")
# Characters that end a link or have a meaning inside it.
_IN_TITLE = re.compile(r"[\s\[\]\\`<>*_|]+")
_ENCODED = {"(": "%28", ")": "%29", "<": "%3C", ">": "%3E", '"': "%22", "\\": "%5C", "`": "%60"}


def with_sources(text: str, metadata: Json, left: Losses) -> str:
    """Return a ChatGPT text with links instead of its markers, and further sources at its end."""
    if not metadata.get("content_references") and not _MARKER.search(text) and not _PRIVATE.search(text):
        return text
    by_marker, further = _references(metadata)
    by_marker |= _replacements(text, metadata)
    found = {_reference_id(each): each for each in found_sources(metadata)}

    def replace(match: re.Match[str]) -> str:
        replacement = by_marker.get(match[0], None)
        if replacement is None:
            replacement = _self_explaining(match[0]) or _found_links(match[0], found)
        if replacement is None:
            _count_lost(match[0], left)
            return ""
        needs_space = replacement and match.start() and not text[match.start() - 1].isspace()
        return f" {replacement}" if needs_space else replacement

    text = _with_formulas(text)
    made = _PRIVATE.sub("", _MARKER.sub(replace, text))
    return _with_list(made, further)


def cited_text(text: str, citations: Sequence[Any]) -> str:
    """Return a Claude text block with a link after each passage that cites a source."""
    places: dict[int, list[Link]] = {}
    for each in citations[:MAX_REFERENCES]:
        cited = as_dict(each)
        links = list(_links([cited, as_dict(cited.get("details")), *map(as_dict, as_list(cited.get("sources")))]))
        at = cited.get("end_index")
        place = at if isinstance(at, int) and 0 <= at <= len(text) else len(text)
        places.setdefault(place, []).extend(link for link in links if link not in places.get(place, []))
    pieces, end = [], len(text)
    for place in sorted(places, reverse=True):
        if replacement := _link_list(places[place]):
            pieces += [text[place:end], f" {replacement}"]
            end = place
    return "".join([text[:end], *reversed(pieces)])


def found_sources(metadata: Json) -> Iterator[Json]:
    """Yield the pages that a web search of ChatGPT has found. Each has a `title`, a `url` and often a `ref_id`."""
    groups = map(as_dict, as_list(metadata.get("search_result_groups")))
    yield from islice((as_dict(entry) for group in groups for entry in as_list(group.get("entries"))), MAX_REFERENCES)


def with_list(text: str, sources: Iterable[Json]) -> str:
    """Return a text with a list of the sources that it does not link. Each has a `title` or `name`, and a `url`."""
    return _with_list(text, list(_links(sources)))


def titled_link(title: str, address: str) -> str:
    """Return a Markdown link with a title, or only the title if the address is not a web address."""
    links = list(_links([{"title": title, "url": address}]))
    return _link(*links[0]) if links else title


def _references(metadata: Json) -> tuple[dict[str, str], list[Link]]:
    """Return the replacement of each marker, and the sources that the message lists at its end."""
    by_marker: dict[str, str] = {}
    further: list[Link] = []
    for each in as_list(metadata.get("content_references"))[:MAX_REFERENCES]:
        reference, marker = as_dict(each), as_text(as_dict(each).get("matched_text"))
        links = list(_links(_sources(reference)))
        if _MARKER.fullmatch(marker):
            replacement = _link_list(links) or _entity_name(reference) or _product_names(reference)
            if replacement or reference.get("type") == "hidden":
                by_marker[marker] = replacement
        else:
            further += [link for link in links if link not in further]
    return by_marker, further


def _sources(reference: Json) -> Iterator[Json]:
    yield reference
    for name in ("items", "sources"):
        for each in map(as_dict, as_list(reference.get(name))):
            yield each
            yield from map(as_dict, as_list(each.get("supporting_websites")))


def _entity_name(reference: Json) -> str:
    """Return the text for a reference without a source: an entity's name, or "" if it is hidden."""
    name = as_text(reference.get("name")) or as_text(reference.get("alt"))
    return "" if reference.get("type") == "hidden" else _PRIVATE.sub("", name)


def _product_names(reference: Json) -> str:
    """Return the products of a reference, as links or titles."""
    products = map(as_dict, as_list(reference.get("products"))[:MAX_REFERENCES])
    names = (titled_link(_plain(as_text(each.get("title"))), as_text(each.get("url"))) for each in products)
    return ", ".join(filter(None, names))


def _replacements(text: str, metadata: Json) -> dict[str, str]:
    """Return the replacements of the markers whose positions are in `citations`."""
    replacements: dict[str, str] = {}
    for each in as_list(metadata.get("citations"))[:MAX_REFERENCES]:
        citation = as_dict(each)
        start, source = citation.get("start_ix"), as_dict(citation.get("metadata"))
        marker = _MARKER.match(text, start) if isinstance(start, int) and 0 <= start < len(text) else None
        replacement = _link_list(_links([source, citation])) or _file_name(source)
        if marker and replacement:
            replacements[marker[0]] = replacement
    return replacements


def _reference_id(entry: Json) -> str:
    """Return the name by which markers refer to a found page, such as `turn0search1`."""
    parts = as_dict(entry.get("ref_id"))
    return f"turn{parts.get('turn_index')}{parts.get('ref_type')}{parts.get('ref_index')}"


def _found_links(marker: str, found: Mapping[str, Json]) -> str | None:
    """Return links to the found pages that a marker names, or None if there are none."""
    names = marker[1:-1].split("\ue202")[1:]
    return _link_list(_links(found[name] for name in names if name in found)) or None


def _file_name(source: Json) -> str:
    name = as_text(source.get("title")) or as_text(source.get("name"))
    return f"({_plain(name)})" if name else ""


def _self_explaining(marker: str) -> str | None:
    """Return the text for a marker without a reference: names of entities or products, an address, or a file name."""
    if marker.startswith("【"):
        name = marker.rpartition("†")[2].rstrip("】")
        return f"({_plain(name)})" if "." in name else None
    kind, *values = marker[1:-1].split("\ue202")
    if kind in ("entity", "product", "product_entity") and values:
        return _entity(_json(values[0]))
    if kind == "products" and values:
        chosen = as_list(as_dict(_json(values[0])).get("selections"))
        return ", ".join(filter(None, map(_entity, chosen))) or None
    if kind == "url" and values:
        return titled_link(values[0], values[-1])
    return None


def _entity(value: object) -> str | None:
    """Return the name in a list of an entity's kind or id and its name."""
    return next((name for name in map(as_text, as_list(value)[1:2]) if name), None)


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _count_lost(marker: str, left: Losses) -> None:
    if widget := _WIDGET.fullmatch(marker):
        left.add_unknown(next(iter(as_dict(_json(widget[1]))), "genui"))
    else:
        left[Loss.CITATIONS] += 1


def _with_formulas(text: str) -> str:
    """Return a text in which formulas are blocks of their own instead of markers."""
    blocks, end, indent = list[str](), 0, ""
    for match in _WIDGET.finditer(text):
        if formula := _formula(match[1]):
            blocks.append(_passage(text[end : match.start()], indent) if end else text[: match.start()].rstrip())
            indent = _indent_at(text, match.start())
            blocks.append("\n".join(f"{indent}{line}" for line in ("$$", *formula, "$$")))
            end = match.end()
    if not end:
        return text
    return "\n\n".join(block for block in [*blocks, _passage(text[end:], indent)] if block.strip())


def _formula(widget: str) -> list[str]:
    """Return the lines of the formula in a widget, or none for other widgets. A blank line would end the block."""
    members = as_dict(_json(widget)).items()
    contents = (as_text(as_dict(value).get("content")) for name, value in members if name.startswith("math_block"))
    return [line for line in next(contents, "").splitlines() if line.strip()]


def _passage(text: str, indent: str) -> str:
    """Return the text after a formula. The rest of the formula's line gets its indent."""
    line, newline, further = text.partition("\n")
    if line.strip():
        return f"{indent}{line.strip()}{newline}{further}".rstrip()
    return further.lstrip("\n").rstrip()


def _indent_at(text: str, at: int) -> str:
    """Return the spaces that keep a block in the list item of this place."""
    start = text.rfind("\n", 0, at) + 1
    found = _LINE_START.match(text, start, at)
    return " " * (found.end() - start) if found else ""


def _with_list(text: str, links: Sequence[Link]) -> str:
    missing = [link for link in links if link[1] not in text]
    if not missing:
        return text
    lines = [f"- {_link(*link)}" for link in missing]
    return "\n".join([text.rstrip(), "", *lines] if text.strip() else lines)


def _links(sources: Iterable[Json]) -> Iterator[Link]:
    """Yield the (title, address) pairs of web sources, without duplicates."""
    seen = set()
    for source in sources:
        address = _address(as_text(source.get("url")))
        if address and address not in seen:
            seen.add(address)
            title = as_text(source.get("title")) or as_text(source.get("attribution")) or as_text(source.get("name"))
            yield _plain(title) or urlsplit(address).netloc, address


def _address(url: str) -> str:
    url = url.strip()
    try:
        is_known = urlsplit(url).scheme in ("http", "https") and bool(urlsplit(url).netloc)
    except ValueError:
        return ""
    if not is_known or len(url) > MAX_ADDRESS_LENGTH or any(char.isspace() or not char.isprintable() for char in url):
        return ""
    return "".join(_ENCODED.get(char, char) for char in url)


def _plain(title: str) -> str:
    return _IN_TITLE.sub(" ", title).strip()[:MAX_TITLE_LENGTH]


def _link(title: str, address: str) -> str:
    return f"[{title}]({address})"


def _link_list(links: Iterable[Link]) -> str:
    replacement = ", ".join(_link(*link) for link in links)
    return f"({replacement})" if replacement else ""
