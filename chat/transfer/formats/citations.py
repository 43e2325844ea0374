"""Citations in the texts of other products: their markers become Markdown links.

ChatGPT puts markers between private characters or in lenticular brackets, and their sources into the metadata of the
message; see https://github.com/danny-avila/LibreChat (api/server/utils/import) and
https://github.com/mohamed-chs/convoviz. Claude says at which places a text block cites what.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from agents.messages import Json
from chat.transfer.formats.parsed import Loss, Losses, as_dict, as_list, as_text

Link = tuple[str, str]
MOST_REFERENCES = 2_000
LONGEST_TITLE = 200
LONGEST_ADDRESS = 2_000

_MARKER = re.compile("\ue200[^\ue200\ue201]{0,5000}\ue201|【[^【】†]{0,200}†[^【】]{0,200}】")
_PRIVATE = re.compile("[\ue200-\ue206]")
# Characters that end a link or have a meaning inside it.
_IN_TITLE = re.compile(r"[\s\[\]\\`<>*_|]+")
_ENCODED = {"(": "%28", ")": "%29", "<": "%3C", ">": "%3E", '"': "%22", "\\": "%5C", "`": "%60"}


def with_sources(text: str, metadata: Json, left: Losses) -> str:
    """Return a text of ChatGPT's with links in place of its markers, and further sources at its end."""
    if not metadata.get("content_references") and not _MARKER.search(text) and not _PRIVATE.search(text):
        return text
    by_marker, further = _references(metadata)
    by_marker |= _cited(text, metadata)

    def replace(found: re.Match[str]) -> str:
        said = by_marker.get(found[0], None)
        if said is None:
            said = _self_explaining(found[0])
        if said is None:
            left[Loss.CITATIONS] += 1
            return ""
        return f" {said}" if said and found.start() and not text[found.start() - 1].isspace() else said

    made = _PRIVATE.sub("", _MARKER.sub(replace, text))
    return _with_list(made, further)


def cited_text(text: str, citations: Sequence[Any]) -> str:
    """Return a text block of Claude's with a link behind each passage that cites a source."""
    places: dict[int, list[Link]] = {}
    for each in citations[:MOST_REFERENCES]:
        cited = as_dict(each)
        links = list(_links([cited, as_dict(cited.get("details")), *map(as_dict, as_list(cited.get("sources")))]))
        at = cited.get("end_index")
        place = at if isinstance(at, int) and 0 <= at <= len(text) else len(text)
        places.setdefault(place, []).extend(link for link in links if link not in places.get(place, []))
    pieces, end = [], len(text)
    for place in sorted(places, reverse=True):
        if said := _linked(places[place]):
            pieces += [text[place:end], f" {said}"]
            end = place
    return "".join([text[:end], *reversed(pieces)])


def with_list(text: str, sources: Iterable[Json]) -> str:
    """Return a text with a list of those sources that it has no link to; each has a `title` or `name`, and a `url`."""
    return _with_list(text, list(_links(sources)))


def titled_link(title: str, address: str) -> str:
    """Return a link with a title in Markdown; the title alone where the address is none of the web."""
    links = list(_links([{"title": title, "url": address}]))
    return _link(*links[0]) if links else title


def _references(metadata: Json) -> tuple[dict[str, str], list[Link]]:
    """What stands for each marker, and the sources that the message lists at its end."""
    by_marker: dict[str, str] = {}
    further: list[Link] = []
    for each in as_list(metadata.get("content_references"))[:MOST_REFERENCES]:
        reference, marker = as_dict(each), as_text(as_dict(each).get("matched_text"))
        links = list(_links(_sources(reference)))
        if _MARKER.fullmatch(marker):
            by_marker[marker] = _linked(links) or _shown(reference)
        else:
            further += [link for link in links if link not in further]
    return by_marker, further


def _sources(reference: Json) -> Iterator[Json]:
    yield reference
    for name in ("items", "sources"):
        for each in map(as_dict, as_list(reference.get(name))):
            yield each
            yield from map(as_dict, as_list(each.get("supporting_websites")))


def _shown(reference: Json) -> str:
    """What the program shows for a reference that has no source: an entity's name, or nothing."""
    name = as_text(reference.get("name")) or as_text(reference.get("alt"))
    return "" if reference.get("type") == "hidden" else _PRIVATE.sub("", name)


def _cited(text: str, metadata: Json) -> dict[str, str]:
    """What stands for the markers whose places `citations` tells."""
    found: dict[str, str] = {}
    for each in as_list(metadata.get("citations"))[:MOST_REFERENCES]:
        citation = as_dict(each)
        start, source = citation.get("start_ix"), as_dict(citation.get("metadata"))
        marker = _MARKER.match(text, start) if isinstance(start, int) and 0 <= start < len(text) else None
        said = _linked(_links([source, citation])) or _file_name(source)
        if marker and said:
            found[marker[0]] = said
    return found


def _file_name(source: Json) -> str:
    name = as_text(source.get("title")) or as_text(source.get("name"))
    return f"({_plain(name)})" if name else ""


def _self_explaining(marker: str) -> str | None:
    """What a marker says by itself: an entity's name, an address, the name of a file."""
    if marker.startswith("【"):
        name = marker.rpartition("†")[2].rstrip("】")
        return f"({_plain(name)})" if "." in name else None
    kind, *values = marker[1:-1].split("\ue202")
    if kind == "entity" and values:
        return _entity(values[0])
    if kind == "url" and values:
        return titled_link(values[0], values[-1])
    return None


def _entity(text: str) -> str | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    names = [as_text(each) for each in as_list(value)]
    return next((name for name in names[1:2] if name), None)


def _with_list(text: str, links: Sequence[Link]) -> str:
    missing = [link for link in links if link[1] not in text]
    if not missing:
        return text
    return "\n".join([text.rstrip(), "", *(f"- {_link(*link)}" for link in missing)])


def _links(sources: Iterable[Json]) -> Iterator[Link]:
    """The (title, address) of sources on the web, each once."""
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
    if not is_known or len(url) > LONGEST_ADDRESS or any(char.isspace() or not char.isprintable() for char in url):
        return ""
    return "".join(_ENCODED.get(char, char) for char in url)


def _plain(title: str) -> str:
    return _IN_TITLE.sub(" ", title).strip()[:LONGEST_TITLE]


def _link(title: str, address: str) -> str:
    return f"[{title}]({address})"


def _linked(links: Iterable[Link]) -> str:
    said = ", ".join(_link(*link) for link in links)
    return f"({said})" if said else ""
