"""The extraction of text from PDF files. It runs in a child process with limits: a file may exhaust memory or CPU."""

from __future__ import annotations

import time
from collections.abc import Iterator
from io import BytesIO

from pypdf import PdfReader

MAX_PAGES = 500
MAX_SECONDS = 10.0


def read(data: bytes, most_chars: int) -> Iterator[str]:
    """Yield the number of pages, then the text page by page. If that is impossible, yield only "broken" or "locked"."""
    reader, pages = _open(data)
    yield pages
    if reader is not None:  # one page may use up the time, but the caller has the number of pages by then
        yield from _texts(reader, most_chars)


def read_part(data: bytes, first: int, start: int, most_pages: int, most_chars: int) -> Iterator[str]:
    """Yield the number of pages, or "broken" or "locked". Then yield the number and the text of each page from `first`.

    The text of the first page begins at the character `start`. A first page that is longer than `most_chars` is cut to
    `most_chars + 1` characters; a later page that does not fit is left out.
    """
    reader, pages = _open(data)
    yield pages
    if reader is None:
        return
    until = time.monotonic() + MAX_SECONDS
    for number in range(first, min(first + most_pages, len(reader.pages) + 1)):
        text = _text(reader, number - 1)[start:]
        start = 0
        if number > first and (len(text) > most_chars or time.monotonic() > until):
            return
        yield str(number)
        yield text[: most_chars + 1]
        most_chars -= len(text)


def _open(data: bytes) -> tuple[PdfReader | None, str]:
    """Return a reader and the number of pages, or None and "broken" or "locked"."""
    try:
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            return None, "locked"
        pages = len(reader.pages)
    except Exception:  # a broken file may break the parser in any way
        pages = 0
    return (reader, str(pages)) if pages else (None, "broken")


def _texts(reader: PdfReader, room: int) -> Iterator[str]:
    until, pages = time.monotonic() + MAX_SECONDS, len(reader.pages)
    for number in range(1, pages + 1):
        if room < 0 or number > MAX_PAGES or time.monotonic() > until:
            yield f"[Left out: pages {number} to {pages}.]"
            return
        text = _text(reader, number - 1)[: room + 1]
        if text:
            yield f"[Page {number}]\n{text}\n\n"
        room -= len(text)


def _text(reader: PdfReader, number: int) -> str:
    try:
        return reader.pages[number].extract_text().strip().encode(errors="replace").decode()
    except Exception:  # the other pages can still be read
        return ""
