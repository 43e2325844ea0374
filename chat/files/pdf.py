"""PDF files: how many pages they have, and their text.

They are read in a process of their own (`pdf_text`): one that is made to take all memory or to take for ever cannot,
and the server's own threads are not held up by the work.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from chat.files.contents import Contents, Problem, Unusable
from chat.files.plain import bounded

ROOT = Path(__file__).resolve().parents[2]
READER = (sys.executable, "-m", "chat.files.pdf_text")
PATIENCE_SECONDS = 20.0
PROBLEMS: dict[str, Problem] = {"broken": "broken_pdf", "locked": "locked_pdf"}


def read(data: bytes) -> Contents:
    """Take a PDF file; without text where that cannot be read in time. Raises Unusable: it is broken or locked."""
    first, _, text = _asked(data).partition("\n")
    if first in PROBLEMS:
        raise Unusable(PROBLEMS[first])
    pages = int(first) if first.isdigit() else None
    return Contents("pdf", "application/pdf", data, pages=pages, text=bounded(text.strip()))


def _asked(data: bytes) -> str:
    """What the reader says: a problem or the number of pages, then the text; as far as it came."""
    try:
        # Nothing of the environment: it holds keys, which a parser of foreign files need not know.
        done = subprocess.run(  # noqa: S603  # our own module, by our own interpreter
            READER, input=data, capture_output=True, cwd=ROOT, env={"PYTHONUTF8": "1"}, timeout=PATIENCE_SECONDS
        )
        said = done.stdout
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
    return said.decode(errors="replace")
