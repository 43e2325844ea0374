"""Reads a PDF file from the standard input and says what is in it; a program, so that it can be given limits."""

from __future__ import annotations

import logging
import sys
import time
from contextlib import suppress
from io import BytesIO

from pypdf import PdfReader

from chat.files.plain import MOST_CHARS

MOST_PAGES = 500
MOST_SECONDS = 10.0
MOST_CPU_SECONDS = 15
MOST_MEMORY = 1024 * 1024 * 1024


def main() -> None:
    """Say the number of pages on a line, then the text; or one word: broken, locked."""
    _limit()
    logging.disable()
    out = sys.stdout
    try:
        reader = PdfReader(BytesIO(sys.stdin.buffer.read()))
        locked = reader.is_encrypted and not reader.decrypt("")
        pages = 0 if locked else len(reader.pages)
    except Exception:  # a broken file may break the parser in any way
        locked, pages = False, 0
    if not pages:
        out.write("locked" if locked else "broken")
        return
    out.write(f"{pages}\n")
    out.flush()  # one page may use up the time, and then this at least is known
    _tell(reader, pages)


def _tell(reader: PdfReader, pages: int) -> None:
    until, room = time.monotonic() + MOST_SECONDS, MOST_CHARS
    for number in range(1, pages + 1):
        if room < 0 or number > MOST_PAGES or time.monotonic() > until:
            sys.stdout.write(f"[Left out: pages {number} to {pages}.]")
            return
        text = _text(reader, number - 1)[: room + 1]
        sys.stdout.write(f"[Page {number}]\n{text}\n\n" if text else "")
        room -= len(text)


def _text(reader: PdfReader, number: int) -> str:
    try:
        return reader.pages[number].extract_text().strip().encode(errors="replace").decode()
    except Exception:  # one page that cannot be read leaves the others
        return ""


def _limit() -> None:
    with suppress(ImportError, OSError, ValueError):  # not every system has them
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_SECONDS, MOST_CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


if __name__ == "__main__":
    main()
