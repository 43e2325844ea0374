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
    try:
        reader = PdfReader(BytesIO(data))
        locked = reader.is_encrypted and not reader.decrypt("")
        pages = 0 if locked else len(reader.pages)
    except Exception:  # a broken file may break the parser in any way
        locked, pages = False, 0
    if not pages:
        yield "locked" if locked else "broken"
        return
    yield str(pages)  # one page may use up the time, and then this at least is known
    yield from _texts(reader, pages, most_chars)


def _texts(reader: PdfReader, pages: int, room: int) -> Iterator[str]:
    until = time.monotonic() + MOST_SECONDS
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
