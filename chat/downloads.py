"""Downloads: file names, streamed text, and streamed ZIP archives."""

from __future__ import annotations

import unicodedata
import zipfile
from collections.abc import AsyncIterator, Generator, Iterable, Iterator
from datetime import datetime
from itertools import islice

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header

# What some system's file names cannot have.
FORBIDDEN = '\\/:*?"<>|'
HIDDEN = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}
LONGEST = 80
# A hop to the thread that reads the rows costs more than a message does.
PIECES_AT_ONCE = 100
# A piece may hold files.
BYTES_AT_ONCE = 1_000_000
# So much of an archive is handed on together.
ZIPPED_AT_ONCE = 64 * 1024


def file_name(title: str, otherwise: str, ending: str) -> str:
    """Make a file name from a title in any script, valid on every system; `otherwise` if nothing is left."""
    kept = (" " if char in FORBIDDEN else char for char in title if unicodedata.category(char) not in HIDDEN)
    stem = " ".join("".join(kept).split())[:LONGEST].strip(" .")
    return f"{stem or otherwise}.{ending}"


def streamed(request: HttpRequest, pieces: Iterator[str], *, name: str, media_type: str) -> StreamingHttpResponse:
    """Stream generated text as a download that is not cached."""
    encoded = (piece.encode() for piece in pieces)
    return passed_on(request, encoded, name=name, media_type=f"{media_type}; charset=utf-8")


def passed_on(request: HttpRequest, pieces: Iterator[bytes], *, name: str, media_type: str) -> StreamingHttpResponse:
    """Stream bytes as a download that is not cached."""
    content = _asynchronous(pieces) if isinstance(request, ASGIRequest) else pieces
    kept_as = content_disposition_header(True, name) or "attachment"
    headers = {"Content-Disposition": kept_as, "Cache-Control": "private, no-store"}
    return StreamingHttpResponse(content, content_type=media_type, headers=headers)


def zipped(entries: Iterable[tuple[str, Iterable[bytes]]], changed: datetime) -> Iterator[bytes]:
    """Pack named entries into a ZIP archive, piece by piece as it is read: nothing is kept but the list of entries."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, pieces in entries:
            info = zipfile.ZipInfo(name, changed.timetuple()[:6])
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w", force_zip64=True) as entry:
                for piece in pieces:
                    entry.write(piece)
                    if sink.size >= ZIPPED_AT_ONCE:
                        yield sink.take()
    yield sink.take()


class _Sink:
    """A write-only file whose content is taken out piece by piece."""

    def __init__(self) -> None:
        self.size = 0
        self._pieces: list[bytes] = []

    def write(self, data: bytes, /) -> int:
        self._pieces.append(data)
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: zipfile asks for it."""

    def close(self) -> None:
        """Do nothing, likewise."""

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces.clear()
        self.size = 0
        return taken


async def _asynchronous(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    try:
        while batch := await sync_to_async(_next)(pieces):
            yield b"".join(batch)
    finally:
        if isinstance(pieces, Generator):  # what it holds is given back in a thread, where it may use the database
            await sync_to_async(pieces.close)()


def _next(pieces: Iterator[bytes]) -> list[bytes]:
    batch: list[bytes] = []
    room = BYTES_AT_ONCE
    for piece in islice(pieces, PIECES_AT_ONCE):
        batch.append(piece)
        room -= len(piece)
        if room <= 0:
            break
    return batch
