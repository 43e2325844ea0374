"""Downloads: file names, streamed text, stored files and their ranges, and streamed ZIP archives."""

from __future__ import annotations

import re
import time
import unicodedata
import zipfile
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.core.files.base import File
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

from agents.sandbox.browsing import OpenFile
from chat.log_context import ExpectedEnd
from chat.overrides.postgres.lending import return_connection

# Characters that some systems do not allow in file names.
FORBIDDEN = '\\/:*?"<>|'
HIDDEN = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}
MAX_LENGTH = 80
# Pieces that are read in one call, because the switch to the thread that reads the rows takes longer than one message.
PIECES_AT_ONCE = 100
# The most bytes that are read in one call. A piece may contain files.
BYTES_AT_ONCE = 1_000_000
# Bytes of an archive that are yielded together.
ZIPPED_AT_ONCE = 64 * 1024
# Bytes of a stored file that are read at a time.
PIECE = 256 * 1024
# Media types of streamed text. Other downloads may be large, so nginx must not buffer them: once it has stored 1 GB of
# a response, it stops reading, and Parley ends a response that is not read (STALL_SECONDS). `Compression` leaves them
# as they are.
COMPRESSED = ("text/", "application/json")
# Seconds after which a download that is generated while it is sent checks the user's access again.
RECHECKED = 5.0
T = TypeVar("T")
SINGLE_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


def file_name(title: str, otherwise: str, ending: str) -> str:
    """Return a file name from a title in any script, valid on every system. It is `otherwise` if nothing remains."""
    kept = (" " if char in FORBIDDEN else char for char in title if unicodedata.category(char) not in HIDDEN)
    stem = " ".join("".join(kept).split())[:MAX_LENGTH].strip(" .")
    return f"{stem or otherwise}.{ending}"


def stream_download(
    request: HttpRequest, pieces: Iterator[str], *, name: str, media_type: str
) -> StreamingHttpResponse:
    """Stream generated text as a download that is not cached."""
    encoded = (piece.encode() for piece in pieces)
    return passed_on(request, encoded, name=name, media_type=f"{media_type}; charset=utf-8")


def passed_on(
    request: HttpRequest,
    pieces: Iterator[bytes],
    *,
    name: str,
    media_type: str,
    inline: bool = False,
    close: Callable[[], None] | None = None,
) -> StreamingHttpResponse:
    """Stream bytes that are not cached, as a download, or `inline` for the browser to show.

    `close` is called when the response ends, also if nothing was read, as by HEAD or by a client that disconnects.
    """
    content = _asynchronous(pieces) if isinstance(request, ASGIRequest) else pieces
    kept_as = content_disposition_header(not inline, name) or "attachment"
    headers = {"Content-Disposition": kept_as, "Cache-Control": "private, no-store"}
    if not media_type.startswith(COMPRESSED):
        headers["X-Accel-Buffering"] = "no"
    response = StreamingHttpResponse(content, content_type=media_type, headers=headers)
    if close is not None:
        response._resource_closers.append(close)  # type: ignore[attr-defined]  # the stubs lack it
    return response


class CutOffError(ExpectedEnd):
    """The user of a download has lost access. The connection is broken, or else the file would look complete."""

    def __init__(self) -> None:
        super().__init__("A download was ended, because its user has lost access")


def while_permitted(pieces: Iterator[T], is_permitted: Callable[[], bool]) -> Iterator[T]:
    """Yield the pieces. Raise CutOffError as soon as the user has lost access.

    The client determines how long a download takes, and the download would include what is written in the meantime.
    """
    due = time.monotonic() + RECHECKED
    try:
        for piece in pieces:
            if time.monotonic() >= due:
                if not is_permitted():
                    raise CutOffError
                due = time.monotonic() + RECHECKED
            yield piece
    finally:
        if close := getattr(pieces, "close", None):  # otherwise an error keeps a generator and its data alive
            close()


def zip_archive(entries: Iterable[tuple[str, Iterable[bytes]]], changed: datetime) -> Iterator[bytes]:
    """Yield a ZIP archive of named entries while they are read. Only the list of entries is kept in memory."""
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
        """Do nothing, because zipfile calls it."""

    def close(self) -> None:
        """Do nothing, because zipfile calls it."""

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces.clear()
        self.size = 0
        return taken


def of_file(request: HttpRequest, found: OpenFile, *, media_type: str = "") -> StreamingHttpResponse:
    """Stream a file of a workspace and close it: as a download, or for the browser to show if `media_type` is given."""
    name, kind = found.entry.name, media_type or "application/octet-stream"
    response = passed_on(request, found.pieces(), name=name, media_type=kind, inline=bool(media_type))
    response["Content-Length"] = str(found.entry.size)
    # The content may never be read, so close the file with the response, as FileResponse does.
    response._resource_closers.append(found.stream.close)  # type: ignore[attr-defined]  # the stubs lack it
    return response


def requested_range(request: HttpRequest, tag: str, size: int) -> range | None:
    """Return the bytes that `Range` requests: None for the whole file, an empty range if they do not exist.

    Several ranges, other units and a stale `If-Range` get the whole file, as RFC 9110 allows.
    """
    match = SINGLE_RANGE.fullmatch(request.headers.get("Range", "").replace(" ", ""))
    if match is None or match[1] == match[2] == "" or request.headers.get("If-Range", tag) != tag:
        return None
    if not match[1]:
        return range(max(0, size - int(match[2])), size)
    first, last = int(match[1]), int(match[2] or size - 1)
    if match[2] and last < first:
        return None
    return range(first, min(last + 1, size)) if first < size else range(0)


def of_stored(
    request: HttpRequest, file: File[bytes], part: range | None = None, *, media_type: str, headers: dict[str, str]
) -> HttpResponseBase:
    """Serve a stored file, or a part of it, and close it. More than BYTES_AT_ONCE is streamed."""
    size = file.size
    wanted = range(size) if part is None else part
    if part is not None:
        headers = {**headers, "Content-Range": f"bytes {part.start}-{part.stop - 1}/{size}"}
    status = 200 if part is None else 206
    if len(wanted) <= BYTES_AT_ONCE:
        with file:
            file.seek(wanted.start)
            data = file.read(len(wanted))
        return HttpResponse(data, status=status, content_type=media_type, headers=headers)
    pieces = _pieces(file, wanted)
    content = _asynchronous(pieces) if isinstance(request, ASGIRequest) else pieces
    headers = {**headers, "Content-Length": str(len(wanted))}
    response = StreamingHttpResponse(content, status=status, content_type=media_type, headers=headers)
    response._resource_closers.append(file.close)  # type: ignore[attr-defined]  # the stubs lack it
    return response


def _pieces(file: File[bytes], wanted: range) -> Iterator[bytes]:
    left = len(wanted)
    with file:
        file.seek(wanted.start)
        while left > 0 and (piece := file.read(min(PIECE, left))):
            left -= len(piece)
            yield piece


async def _asynchronous(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    try:
        while batch := await sync_to_async(_next)(pieces):
            yield b"".join(batch)
    finally:
        if isinstance(pieces, Generator):  # closed in a thread, because its cleanup may use the database
            await sync_to_async(pieces.close)()


def _next(pieces: Iterator[bytes]) -> list[bytes]:
    batch: list[bytes] = []
    room = BYTES_AT_ONCE
    for piece in islice(pieces, PIECES_AT_ONCE):
        batch.append(piece)
        room -= len(piece)
        if room <= 0:
            break
    return_connection()  # the client decides when the next batch is read
    return batch
