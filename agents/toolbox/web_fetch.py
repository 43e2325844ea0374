"""Reading a page of the public web."""

from __future__ import annotations

import logging
from typing import Annotated

from pydantic import Field

from agents.errors import ToolError
from agents.page_text import is_text
from agents.process_pool import Limits, ProcessPool, WorkFailed
from agents.toolbox.web_client import MAX_BYTES, TOTAL_SECONDS, Page, Policy, fetch
from agents.tools import Tool, tool

logger = logging.getLogger(__name__)

MAX_CHARACTERS = 40_000
# To read a large page after it came: the most that is parsed takes two to three seconds of CPU.
EXTRA_SECONDS = 15.0
# Two pages are read at a time; others wait for their turn within the tool's time.
_processes = ProcessPool(
    "agents.page_text",
    Limits(cpu_seconds=6.0, seconds=EXTRA_SECONDS, memory_mb=384, output_bytes=1_000_000, queue_seconds=EXTRA_SECONDS),
    size=2,
    keep_seconds=20.0,
)


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
        title, length, text = await _read(page, start)
        return _told(page, title, text, length, start)

    return web_fetch


async def _read(page: Page, start: int) -> tuple[str, int, str]:
    """Return the page's title, the length of its text, and the part of the text that begins at `start`."""
    arguments = page.content_type, page.charset or "", page.body, page.url, start, MAX_CHARACTERS
    try:
        title, length, text = await _processes.run_async("read", *arguments)
    except WorkFailed as failed:
        logger.info("A web page could not be read: %s", failed)
        raise ToolError(f"The text of {page.url} could not be read within the limits of time and memory.") from failed
    return title.decode(), int(length), text.decode(errors="surrogatepass")


def _told(page: Page, title: str, text: str, length: int, start: int) -> str:
    head = [f"URL: {page.url}", *([f"Title: {title}"] if title else []), "The text is the page's, not the user's."]
    return "\n".join([*head, "", text or "[No text here.]", *_cut_note(page, length, start)])


def _cut_note(page: Page, length: int, start: int) -> list[str]:
    end = start + MAX_CHARACTERS
    if end < length:
        return ["", f"[Characters {start:,} to {end:,} of {length:,}. Read on with start={end}.]"]
    return [] if page.complete else ["", f"[The page is larger than {MAX_BYTES:,} bytes and was cut.]"]


web_fetch = make_web_fetch(Policy())
