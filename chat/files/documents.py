"""Extract the text of documents for search and reading: PDF files page by page, HTML as Markdown, text unchanged.

Formats that could exhaust time or memory are read in child processes with limits.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agents.process_pool import Limits, ProcessPool, WorkFailed
from chat.files import sniffing
from chat.files.contents import Unusable
from chat.files.pdf import PROBLEMS
from chat.files.plain import charset_of

# Characters of a document that are kept. The rest is dropped.
MAX_CHARS = 1_000_000
# Seconds for all pages of a PDF file together, and the number of pages that one process reads.
MAX_SECONDS = 40.0
PAGES_AT_ONCE = 100
_HTML_NAME = re.compile(r"\.x?html?$", re.IGNORECASE)
_HTML_START = re.compile(rb"\s*<(!doctype html|html|head|body)\b", re.IGNORECASE)
_pdf_processes = ProcessPool(
    "agents.pdf_text",
    Limits(cpu_seconds=15.0, seconds=20.0, memory_mb=1024, output_bytes=6_000_000, queue_seconds=30.0),
    size=2,
)
_html_processes = ProcessPool(
    "agents.toolbox.page_text",
    Limits(cpu_seconds=10.0, seconds=20.0, memory_mb=384, output_bytes=6_000_000, queue_seconds=30.0),
    size=1,
    keep_seconds=20.0,
)


@dataclass(frozen=True, slots=True)
class Document:
    """A document. `parts` are pages with their numbers, or one text with None. `is_cut`: the document has more text."""

    kind: Literal["pdf", "html", "text"]
    media_type: str
    parts: Sequence[tuple[int | None, str]]
    pages: int | None = None
    is_cut: bool = False


def read(name: str, data: bytes) -> Document:
    """Read a document.

    Raise Unusable if it cannot be read or has no text. May take seconds, and wait for other files.
    """
    if not data.strip():
        raise Unusable("empty")
    try:
        found = _read(name, data)
    except WorkFailed as failed:
        raise Unusable("unavailable" if failed.reason == "busy" else "too_complex") from failed
    if not any(text.strip() for _page, text in found.parts):
        raise Unusable("no_text")
    return found


def _read(name: str, data: bytes) -> Document:
    if data.startswith(sniffing.PDF):
        return _pdf(data)
    if sniffing.browser_type(data[:16]) or not (charset := charset_of(data)):
        raise Unusable("unsupported")
    if _HTML_NAME.search(name) or _HTML_START.match(data):
        pieces = _html_processes.run("read", "text/html", charset, data, "", 0, MAX_CHARS)
        _title, length, text = (piece.decode(errors="replace") for piece in pieces)
        return Document("html", "text/html", [(None, _storable(text))], is_cut=int(length) > MAX_CHARS)
    text = data.decode(charset, errors="replace").removeprefix("\ufeff")
    return Document("text", "text/plain", [(None, _storable(text[:MAX_CHARS]))], is_cut=len(text) > MAX_CHARS)


def _pdf(data: bytes) -> Document:
    parts = list[tuple[int | None, str]]()
    first, count, room = 1, 1, MAX_CHARS
    until = time.monotonic() + MAX_SECONDS
    while first <= count and room > 0 and time.monotonic() < until:
        try:
            pieces = _pdf_processes.run("read_part", data, first, 0, PAGES_AT_ONCE, room)
        except WorkFailed:
            if not parts:
                raise
            break
        head, *found = (piece.decode(errors="replace") for piece in pieces)
        if head in PROBLEMS:
            raise Unusable(PROBLEMS[head])
        count = int(head)
        for number, text in zip(found[::2], found[1::2], strict=True):
            parts.append((int(number), _storable(text[:room])))
            room -= len(text)
            first = int(number) + 1
    return Document("pdf", "application/pdf", parts, count, is_cut=first <= count or room < 0)


def _storable(text: str) -> str:
    return text.replace("\0", "").encode(errors="replace").decode()
