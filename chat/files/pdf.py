"""PDF files: how many pages they have, and their text.

Each is read in a process of its own (`pdf_text`): one that is made to take all memory or to take for ever cannot, and
the server's own threads are not held up by the work.
"""

from __future__ import annotations

from agents.process_pool import Limits, ProcessPool, WorkFailed
from chat.files.contents import Contents, Problem, Unusable
from chat.files.plain import bounded

PROBLEMS: dict[str, Problem] = {"broken": "broken_pdf", "locked": "locked_pdf"}
# Apart from images, so that slow PDF files hold up nothing but PDF files.
_processes = ProcessPool(
    "chat.files.pdf_text",
    Limits(cpu_seconds=15.0, seconds=20.0, memory_mb=1024, output_bytes=4_000_000, queue_seconds=60.0),
    size=2,
)


def read(data: bytes) -> Contents:
    """Take a PDF file; without text where that cannot be read in time. Raises Unusable: it is broken or locked."""
    first, *texts = _pieces(data) or [""]
    if first in PROBLEMS:
        raise Unusable(PROBLEMS[first])
    pages = int(first) if first.isdigit() else None
    return Contents("pdf", "application/pdf", data, pages=pages, text=bounded("".join(texts).strip()))


def _pieces(data: bytes) -> list[str]:
    """What the process says: a problem or the number of pages, then the text; as far as it came."""
    pieces: list[str] = []
    try:
        for piece in _processes.stream("read", data):
            pieces.append(piece.decode(errors="replace"))
    except WorkFailed as failed:
        if failed.reason == "busy":
            raise Unusable("unavailable") from None
    return pieces
