"""Reading a page of the public web."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agents.errors import ToolError
from agents.threads import in_thread
from agents.toolbox.readable import is_text, readable
from agents.toolbox.web_client import MAX_BYTES, TOTAL_SECONDS, Page, Policy, fetch
from agents.tools import Tool, tool

MAX_CHARACTERS = 40_000
# To read a large page after it came.
EXTRA_SECONDS = 10.0


def make_web_fetch(policy: Policy) -> Tool:
    """Make the tool for a policy of where it may go."""

    @tool(time_limit=TOTAL_SECONDS + EXTRA_SECONDS)
    async def web_fetch(
        url: Annotated[str, Field(description="http:// or https:// address of the page")],
        start: Annotated[int, Field(ge=0, description="Character to start at, to read on in a long page")] = 0,
    ) -> str:
        """Fetch a public web page and return its readable text: HTML as Markdown, other text as it is."""
        page = await fetch(url.strip(), policy)
        if not is_text(page.content_type, page.body):
            kind = page.content_type or "binary data"
            raise ToolError(f"{page.url} is {kind}, {len(page.body):,} bytes: only text can be read.")
        title, text = await in_thread(readable, page.content_type, page.charset, page.body, page.url)
        return _told(page, title, text, start)

    return web_fetch


def _told(page: Page, title: str, text: str, start: int) -> str:
    head = [f"URL: {page.url}", *([f"Title: {title}"] if title else []), "The text is the page's, not the user's."]
    shown = text[start : start + MAX_CHARACTERS] or "[No text here.]"
    return "\n".join([*head, "", shown, *_cut_note(page, len(text), start)])


def _cut_note(page: Page, length: int, start: int) -> list[str]:
    end = start + MAX_CHARACTERS
    if end < length:
        return ["", f"[Characters {start:,} to {end:,} of {length:,}. Read on with start={end}.]"]
    return [] if page.complete else ["", f"[The page is larger than {MAX_BYTES:,} bytes and was cut.]"]


web_fetch = make_web_fetch(Policy())
