"""The tool that searches the web with the configured service."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agents.errors import ToolError
from agents.foreign_text import ForeignText
from agents.i18n import gettext as _
from agents.sources import SourceNumbers
from agents.toolbox.search.client import search_web
from agents.toolbox.search.config import SearchConfig
from agents.toolbox.search.services import Period, Search
from agents.tools import NO_CONTEXT, Tool, ToolContext, tool

MAX_QUERY_LENGTH = 400
ORIGIN = "web search"
EXTRA_SECONDS = 5.0


def make_web_search(config: SearchConfig | None, key: str = "") -> Tool:
    """Return the tool for a service. Without a service, it is only a description, and agents do not get it."""

    @tool(time_limit=(config.timeout if config else 0.0) + EXTRA_SECONDS, foreign=True, about=_("Searches the web"))
    async def web_search(
        query: Annotated[
            str,
            Field(
                min_length=1,
                max_length=MAX_QUERY_LENGTH,
                description=f"What to search for, at most {MAX_QUERY_LENGTH} characters",
            ),
        ],
        period: Annotated[Period, Field(description="How old a page may be")] = "any",
        context: ToolContext = NO_CONTEXT,
    ) -> ForeignText | str:
        """Search the web. Returns a numbered list of pages with title, address and an excerpt.

        In your answer, cite a page by its number in square brackets, such as [1] or [1][3], directly behind what it
        supports.
        """
        if config is None:
            raise ToolError("Web search is not configured here.")
        results = await search_web(Search(query, period), config, key)
        if not results:
            return "No pages found. Search for other words."
        numbers = context.sources or SourceNumbers()
        sources = [numbers.number(page.title, page.url) for page in results]
        pages = (
            f"[{source.number}] {page.title}\n{page.url}\n{page.snippet}".rstrip()
            for source, page in zip(sources, results, strict=True)
        )
        return ForeignText("\n\n".join(pages), ORIGIN, tuple(sources))

    return web_search


web_search = make_web_search(None)
