"""The text of PDF files. It runs in a process with limits: a file from elsewhere may exhaust memory or CPU."""

from __future__ import annotations

import time
from collections.abc import Iterator
from io import BytesIO

from pypdf import PdfReader

MOST_PAGES = 500
MOST_SECONDS = 10.0


def read(data: bytes, most_chars: int) -> Iterator[str]:
    """Yield the number of pages, then the text, page by page; or one word: broken, locked."""
    reader, pages = _opened(data)
    yield pages
    if reader is not None:  # one page may use up the time, and then the number at least is known
        yield from _texts(reader, most_chars)


def read_part(data: bytes, first: int, start: int, most_pages: int, most_chars: int) -> Iterator[str]:
    """Yield the number of pages (or broken, locked), and of each page from `first` on its number and its text.

    `start` is the character at which the first one begins. The last text is cut if it does not fit.
    """
    reader, pages = _opened(data)
    yield pages
    if reader is None:
        return
    until = time.monotonic() + MOST_SECONDS
    for number in range(first, min(first + most_pages, len(reader.pages) + 1)):
        text = _text(reader, number - 1)[start:]
        start = 0
        if number > first and (len(text) > most_chars or time.monotonic() > until):
            return
        yield str(number)
        yield text[: most_chars + 1]
        most_chars -= len(text)


def _opened(data: bytes) -> tuple[PdfReader | None, str]:
    """Return a reader with the number of pages, or None with what is wrong."""
    try:
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            return None, "locked"
        pages = len(reader.pages)
    except Exception:  # a broken file may break the parser in any way
        pages = 0
    return (reader, str(pages)) if pages else (None, "broken")


def _texts(reader: PdfReader, room: int) -> Iterator[str]:
    until, pages = time.monotonic() + MOST_SECONDS, len(reader.pages)
    for number in range(1, pages + 1):
        if room < 0 or number > MOST_PAGES or time.monotonic() > until:
            yield f"[Left out: pages {number} to {pages}.]"
            return
        text = _text(reader, number - 1)[: room + 1]
        if text:
            yield f"[Page {number}]\n{text}\n\n"
        room -= len(text)


def _text(reader: PdfReader, number: int) -> str:
    try:
        return reader.pages[number].extract_text().strip().encode(errors="replace").decode()
    except Exception:  # one page that cannot be read leaves the others
        return ""
