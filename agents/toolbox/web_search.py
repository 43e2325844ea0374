"""Searching the web, by the service that is configured."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agents.errors import ToolError
from agents.toolbox.search.client import search_web
from agents.toolbox.search.config import SearchConfig
from agents.toolbox.search.services import Period, Result, Search
from agents.tools import Tool, tool

LONGEST_QUERY = 400
EXTRA_SECONDS = 5.0


def make_web_search(config: SearchConfig | None, key: str = "") -> Tool:
    """Make the tool for a service. Without one it only describes itself, and agents do not get it."""

    @tool(time_limit=(config.timeout if config else 0.0) + EXTRA_SECONDS, foreign=True)
    async def web_search(
        query: Annotated[str, Field(min_length=1, max_length=LONGEST_QUERY, description="What to search for")],
        period: Annotated[Period, Field(description="How old a page may be")] = "any",
    ) -> str:
        """Search the web. Returns a numbered list of pages with title, address and an excerpt; read a page with
        web_fetch if you have it."""
        if config is None:
            raise ToolError("Web search is not configured here.")
        return _listed(query, await search_web(Search(query, period), config, key))

    return web_search


def _listed(query: str, results: list[Result]) -> str:
    if not results:
        return f"No pages found for {query!r}. Search for other words."
    pages = (f"[{n}] {page.title}\n{page.url}\n{page.snippet}".rstrip() for n, page in enumerate(results, 1))
    return "\n\n".join(pages)


web_search = make_web_search(None)
