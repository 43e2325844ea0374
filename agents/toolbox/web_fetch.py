"""The tool that reads pages and PDF files of the public web."""

from __future__ import annotations

import logging
import re
from typing import Annotated

from pydantic import Field
from yarl import URL

from agents.errors import ToolError
from agents.foreign_text import ForeignText
from agents.i18n import gettext as _
from agents.process_pool import Limits, ProcessPool, WorkFailed
from agents.sources import SourceNumbers
from agents.threads import in_thread
from agents.toolbox.address_policy import is_allowed, is_known, is_same_site, texts_with_addresses
from agents.toolbox.web_client import MAX_BYTES, MAX_PDF_BYTES, PDF, TOTAL_SECONDS, Judge, Page, Policy, fetch
from agents.tools import NO_CONTEXT, Tool, ToolContext, tool

logger = logging.getLogger(__name__)

MAX_CHARACTERS = 40_000
MAX_PAGES = 50
_TEXT_TYPE = re.compile(
    r"text/.*|application/(.*[+])?(json|xml|yaml|x-yaml|toml|javascript|ecmascript|x-ndjson|sql|rtf)"
)
_MEDIA_TYPE = re.compile(r"[a-z]+/[a-z0-9.+-]{1,60}")
NOT_KNOWN = (
    "{address} was not opened. This conversation holds text from elsewhere (a page, a file or an import), and since "
    "then only addresses are opened that a person has written here or that are links in what was read: any other could "
    "carry data out. Open one of those exactly as it is, or ask the user to send you the address."
)
# The seconds to read a page after it has arrived. The largest one takes two to three seconds of CPU time.
EXTRA_SECONDS = 15.0
# At most two pages are read at the same time. Others wait, within the tool's time limit.
_processes = ProcessPool(
    "agents.toolbox.page_text",
    Limits(cpu_seconds=6.0, seconds=EXTRA_SECONDS, memory_mb=384, output_bytes=1_000_000, queue_seconds=EXTRA_SECONDS),
    size=2,
    keep_seconds=20.0,
)
_pdf_processes = ProcessPool(
    "agents.pdf_text",
    Limits(
        cpu_seconds=12.0, seconds=EXTRA_SECONDS, memory_mb=1024, output_bytes=1_000_000, queue_seconds=EXTRA_SECONDS
    ),
    size=2,
)


def make_web_fetch(policy: Policy) -> Tool:
    """Return the tool with a policy for the addresses that it may open."""

    @tool(time_limit=TOTAL_SECONDS + EXTRA_SECONDS, foreign=True, about=_("Reads public web pages and PDF files"))
    async def web_fetch(
        url: Annotated[str, Field(description="http:// or https:// address of the page")],
        start: Annotated[int, Field(ge=0, description="Character to start at, to read on in a long page")] = 0,
        page_number: Annotated[int, Field(ge=1, description="Page of a PDF file to start at")] = 1,
        context: ToolContext = NO_CONTEXT,
    ) -> ForeignText:
        """Fetch a public web page and return its readable text: HTML as Markdown, the text of a PDF file page by page,
        other text as it is.

        In your answer, cite the page by its number in square brackets, such as [1], directly behind what it supports.
        """
        page = await fetch(url.strip(), policy, _judge(context))
        if page.body.startswith(PDF):
            return _from_page(page, url.strip(), "", await _read_pdf(page, page_number, start), context)
        if not _is_text(page.content_type, page.body):
            kind = page.content_type if _MEDIA_TYPE.fullmatch(page.content_type) else "binary data"
            raise ToolError(f"{page.url} is {kind}, {len(page.body):,} bytes: only text and PDF files can be read.")
        title, length, text = await _read(page, start)
        parts = [text or "[No text here.]", *_cut_note(page, length, start)]
        return _from_page(page, url.strip(), title, parts, context)

    return web_fetch


def _is_text(content_type: str, data: bytes) -> bool:
    """Return whether this is text, by its type, or by its beginning if the server sends no type."""
    if content_type:
        return _TEXT_TYPE.fullmatch(content_type) is not None
    return b"\x00" not in data[:1024]


def _judge(context: ToolContext) -> Judge:
    """Return a function that checks an address before it is opened, and raises ToolError if it is not allowed.

    The check depends on the agent's hosts and on the texts in the conversation. A site may redirect to itself.
    """
    texts = texts_with_addresses(context.system, context.messages, context.own_tools, is_imported=context.is_imported)

    async def judge(target: URL, before: URL | None) -> None:
        address = str(target) if before is None else f"The page redirects to {target.host}, which"
        if not is_allowed(target.raw_host or "", context.allowed_hosts):
            hosts = ", ".join(context.allowed_hosts)
            raise ToolError(f"{address} was not opened: this agent may fetch only from these hosts: {hosts}.")
        if before is not None and is_same_site(before, target):
            return
        if texts is not None and not await in_thread(is_known, target, texts):
            raise ToolError(NOT_KNOWN.format(address=address))

    return judge


async def _read(page: Page, start: int) -> tuple[str, int, str]:
    """Return the page's title, the length of its text, and the part of the text that begins at `start`."""
    arguments = page.content_type, page.charset or "", page.body, page.url, start, MAX_CHARACTERS
    try:
        title, length, text = await _processes.run_async("read", *arguments)
    except WorkFailed as failed:
        logger.info("Could not read a web page: %s", failed)
        raise ToolError(f"The text of {page.url} could not be read within the limits of time and memory.") from failed
    return title.decode(), int(length), text.decode(errors="surrogatepass")


async def _read_pdf(page: Page, first: int, start: int) -> list[str]:
    """Return the text of the pages from `first` on. Raise ToolError."""
    if not page.complete:
        raise ToolError(f"{page.url} is a PDF file of more than {MAX_PDF_BYTES // 1_000_000} MB and cannot be read.")
    try:
        found = await _pdf_processes.run_async("read_part", page.body, first, start, MAX_PAGES, MAX_CHARACTERS)
    except WorkFailed as failed:
        logger.info("Could not read a PDF file: %s", failed)
        raise ToolError(f"The PDF file {page.url} could not be read within the limits of time and memory.") from failed
    count, *pieces = (piece.decode(errors="surrogatepass") for piece in found)
    if not count.isdigit():
        why = "is locked with a password" if count == "locked" else "is broken"
        raise ToolError(f"The PDF file {page.url} {why} and cannot be read.")
    texts = dict(zip(map(int, pieces[::2]), pieces[1::2], strict=True))
    if not texts:
        raise ToolError(f"The PDF file {page.url} has {count} pages; there is no page {first}.")
    return _pdf_parts(int(count), texts, start)


def _pdf_parts(count: int, texts: dict[int, str], start: int) -> list[str]:
    first, last = min(texts), max(texts)
    pages = f"page {first}" if first == last else f"pages {first} to {last}"
    cut = len(texts[last]) > MAX_CHARACTERS
    body = [f"[Page {number}]\n{text[:MAX_CHARACTERS] or '[No text here.]'}" for number, text in texts.items()]
    if cut:
        body.append(f"[Page {last} is longer. Read on with page_number={last} and start={start + MAX_CHARACTERS}.]")
    elif last < count:
        body.append(f"[Pages {last + 1} to {count} are not shown. Read on with page_number={last + 1}.]")
    return [f"PDF file, {pages} of {count}.", *body]


def _from_page(page: Page, asked: str, title: str, parts: list[str], context: ToolContext) -> ForeignText:
    """Return the text of a page below its number, address and title."""
    source = (context.sources or SourceNumbers()).number(title, page.url, asked)
    head = "\n".join([f"[{source.number}] {page.url}", *([f"Title: {title}"] if title else [])])
    return ForeignText("\n\n".join([head, *parts]), URL(page.url).host or page.url, (source,))


def _cut_note(page: Page, length: int, start: int) -> list[str]:
    end = start + MAX_CHARACTERS
    if end < length:
        return [f"[Characters {start:,} to {end:,} of {length:,}. Read on with start={end}.]"]
    return [] if page.complete else [f"[The page is larger than {MAX_BYTES:,} bytes and was cut.]"]


web_fetch = make_web_fetch(Policy())
