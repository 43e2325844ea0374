"""The mapping of a search to the request of each service, and of the service's answer to results. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from yarl import URL

from agents.messages import Json
from agents.safe_text import clean
from agents.toolbox.search.config import SearchConfig, ServiceType
from agents.web_addresses import parse_address

Period = Literal["any", "day", "week", "month", "year"]
MAX_TITLE_LENGTH = 200
MAX_ADDRESS_LENGTH = 2_000
MAX_SNIPPET_LENGTH = 600
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")


@dataclass(frozen=True, slots=True)
class Search:
    """A search. `period` is the greatest age of a page."""

    query: str
    period: Period = "any"


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """An HTTP request: a GET with parameters in the address, or a POST with a JSON body."""

    url: URL
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Json | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """A page that was found. `snippet` is the service's excerpt of it."""

    title: str
    url: str
    snippet: str


def request_of(search: Search, config: SearchConfig, key: str) -> SearchRequest:
    """Return the request to the configured service for a search."""
    return SERVICES[config.type][0](search, config, key)


def results_of(answer: object, config: SearchConfig) -> list[Result]:
    """Return the first results of a service's answer that have a web address, each address once. Raise ValueError."""
    if not isinstance(answer, dict):
        raise ValueError("the answer is not an object")
    found: dict[str, Result] = {}
    for result in _results(SERVICES[config.type][1](answer)):
        found.setdefault(result.url, result)
    return list(found.values())[: config.results]


def _results(entries: object) -> Iterator[Result]:
    if not isinstance(entries, list):
        raise ValueError("the answer has no list of results")
    for entry in entries:
        if isinstance(entry, dict) and (url := _address(entry.get("url"))):
            extra = entry.get("extra_snippets")
            texts = [entry.get("content") or entry.get("description"), *(extra if isinstance(extra, list) else ())]
            snippet = " … ".join(filter(None, map(_plain, texts)))
            title = _plain(entry.get("title")) or url
            yield Result(title[:MAX_TITLE_LENGTH], url, snippet[:MAX_SNIPPET_LENGTH])


def _address(value: object) -> str:
    """Return the value if it is a web address, else ""."""
    if not isinstance(value, str) or len(value) > MAX_ADDRESS_LENGTH or re.search(r"[\s\x00-\x1f<>\"]", value):
        return ""
    try:
        url = parse_address(value)
    except ValueError:
        return ""
    return value if url.scheme in ("http", "https") and url.host else ""


def _plain(text: object) -> str:
    """Return a text on one line, without the tags and entities with which services mark the words of the query."""
    if not isinstance(text, str):
        return ""
    return " ".join(clean(html.unescape(_TAG.sub("", text[: 4 * MAX_SNIPPET_LENGTH]))).split())


def _searxng(search: Search, config: SearchConfig, key: str) -> SearchRequest:
    period = {"time_range": search.period} if search.period != "any" else {}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return SearchRequest(_with(config, "search", {"q": search.query, "format": "json", **period}), headers)


def _brave(search: Search, config: SearchConfig, key: str) -> SearchRequest:
    period = {"freshness": f"p{search.period[0]}"} if search.period != "any" else {}
    url = _with(config, "web/search", {"q": search.query, "count": config.results, **period})
    return SearchRequest(url, {"X-Subscription-Token": key, "Accept": "application/json"})


def _tavily(search: Search, config: SearchConfig, key: str) -> SearchRequest:
    period = {"time_range": search.period} if search.period != "any" else {}
    body = {**config.options, "query": search.query, "max_results": config.results, **period}
    return SearchRequest(URL(f"{config.url}/search"), {"Authorization": f"Bearer {key}"}, body)


def _with(config: SearchConfig, path: str, parameters: Json) -> URL:
    return URL(f"{config.url}/{path}").with_query({**config.options, **parameters})


def _of_brave(answer: Json) -> object:
    # If there are no results, the answer has no "web".
    web: Any = answer.get("web") or {"results": []}
    return web.get("results") if isinstance(web, dict) else None


def _of_others(answer: Json) -> object:
    return answer.get("results")


SERVICES: Mapping[
    ServiceType, tuple[Callable[[Search, SearchConfig, str], SearchRequest], Callable[[Json], object]]
] = {
    "searxng": (_searxng, _of_others),
    "brave": (_brave, _of_brave),
    "tavily": (_tavily, _of_others),
}
