"""Count the pages of PDF files and extract their text.

Each file is read in a child process with limits (`agents.pdf_text`), so that a hostile file cannot exhaust memory or
CPU, and no thread of the server is blocked.
"""

from __future__ import annotations

from agents.process_pool import Limits, ProcessPool, WorkFailed
from chat.files.contents import Contents, Problem, Unusable
from chat.files.plain import MAX_CHARS, bounded

PROBLEMS: dict[str, Problem] = {"broken": "broken_pdf", "locked": "locked_pdf"}
# Separate from the processes for images, so that slow PDF files delay only PDF files.
_processes = ProcessPool(
    "agents.pdf_text",
    Limits(cpu_seconds=15.0, seconds=20.0, memory_mb=1024, output_bytes=4_000_000, queue_seconds=60.0),
    size=2,
)


def read(data: bytes) -> Contents:
    """Read a PDF file. After a time-out its text is empty. Raise Unusable if it is damaged or encrypted."""
    first, *texts = _pieces(data) or [""]
    if first in PROBLEMS:
        raise Unusable(PROBLEMS[first])
    pages = int(first) if first.isdigit() else None
    return Contents("pdf", "application/pdf", data, pages=pages, text=bounded("".join(texts).strip()))


def _pieces(data: bytes) -> list[str]:
    """Return the child's output up to now: a problem or the number of pages, then the text."""
    pieces: list[str] = []
    try:
        for piece in _processes.stream("read", data, MAX_CHARS):
            pieces.append(piece.decode(errors="replace"))
    except WorkFailed as failed:
        if failed.reason == "busy":
            raise Unusable("unavailable") from None
    return pieces
