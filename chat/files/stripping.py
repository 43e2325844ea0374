"""Remove metadata from image files: locations, cameras, comments, and appended data.

Pixels, animations and color profiles stay identical.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

PNG_HEAD = 8
PNG_KEPT = {b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"sBIT", b"bKGD", b"cICP"}
PNG_KEPT |= {b"acTL", b"fcTL", b"fdAT"}
WEBP_KEPT = {b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF", b"ICCP"}
WEBP_FLAGS_KEPT = 0xFF & ~0x0C  # these two bits announce EXIF and XMP
JPEG_END, JPEG_SCAN = 0xD9, 0xDA
JPEG_COMMENT, JPEG_APPS = 0xFE, range(0xE0, 0xF0)
JPEG_APPS_KEPT = {0xE0: b"JFIF\0", 0xE2: b"ICC_PROFILE\0", 0xEE: b"Adobe"}
# In a scan's data, an escaped FF and the restarts are not markers. 01 is not one either, because it has no content.
JPEG_MARKER = re.compile(rb"\xff[^\x00\x01\xd0-\xd7\xff]")
GIF_TABLE = 0x80
GIF_EXTENSION, GIF_IMAGE, GIF_END = 0x21, 0x2C, 0x3B
GIF_CONTROL, GIF_APPLICATION = 0xF9, 0xFF
GIF_LOOPS = (b"\x0bNETSCAPE2.0", b"\x0bANIMEXTS1.0")


def strip_metadata(data: bytes, media_type: str) -> bytes:
    """Return the image without metadata. Raise ValueError or IndexError if its structure is damaged."""
    return b"".join(_PARTS[media_type](data))


def scans(data: bytes) -> int:
    """Return the number of scans of a JPEG. Each extra one costs a few hundred bytes and a pass over all pixels."""
    count = 0
    with suppress(ValueError, IndexError):
        for marker, _begin, _end in _jpeg_segments(data):
            count += marker == JPEG_SCAN
    return count


def _png(data: bytes) -> Iterator[bytes]:
    yield data[:PNG_HEAD]
    place = PNG_HEAD
    while True:
        length, kind = _unpack(">I4s", data, place)
        end = place + 12 + length
        if kind in PNG_KEPT:
            yield data[place:end]
        if kind == b"IEND":
            return
        place = end


def _jpeg(data: bytes) -> Iterator[bytes]:
    yield data[:2]
    for marker, begin, end in _jpeg_segments(data):
        if _jpeg_keeps(marker, data[begin + 4 : begin + 16]):
            yield data[begin:end]


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield each marker up to the last, with the index where it begins and the index where its data ends."""
    end, marker = 2, 0
    while marker != JPEG_END:
        begin = _jpeg_marker(data, end)
        marker, end = data[begin + 1], begin + 2
        if marker != JPEG_END:
            end += _unpack(">H", data, end)[0]
        if marker == JPEG_SCAN:
            end = _jpeg_marker(data, end)
        yield marker, begin, end


def _jpeg_marker(data: bytes, place: int) -> int:
    found = JPEG_MARKER.search(data, place)
    if found is None:
        raise ValueError("the image has no end")
    return found.start()


def _jpeg_keeps(marker: int, begins: bytes) -> bool:
    if marker in JPEG_APPS:
        return marker in JPEG_APPS_KEPT and begins.startswith(JPEG_APPS_KEPT[marker])
    return marker != JPEG_COMMENT


def _webp(data: bytes) -> Iterator[bytes]:
    chunks = b"".join(_webp_chunks(data))
    yield b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WEBP"
    yield chunks


def _webp_chunks(data: bytes) -> Iterator[bytes]:
    place, end = 12, min(len(data), 8 + _unpack("<I", data, 4)[0])
    while place + 8 <= end:
        kind, length = _unpack("<4sI", data, place)
        after = place + 8 + length + length % 2
        chunk = data[place:after]
        if kind == b"VP8X":
            chunk = chunk[:8] + bytes([chunk[8] & WEBP_FLAGS_KEPT]) + chunk[9:]
        if kind in WEBP_KEPT:
            yield chunk
        place = after


def _gif(data: bytes) -> Iterator[bytes]:
    place = 13 + _gif_table(data[10])
    yield data[:place]
    while (kind := data[place]) != GIF_END:
        if kind == GIF_IMAGE:
            end = _gif_blocks(data, place + 11 + _gif_table(data[place + 9]))
            yield data[place:end]
        elif kind == GIF_EXTENSION:
            end = _gif_blocks(data, place + 2)
            if _gif_keeps(data[place + 1], data[place + 2 : place + 14]):
                yield data[place:end]
        else:
            raise ValueError("the image has an unknown part")
        place = end
    yield bytes([GIF_END])


def _gif_table(flags: int) -> int:
    return 3 * 2 ** ((flags & 7) + 1) if flags & GIF_TABLE else 0


def _gif_blocks(data: bytes, place: int) -> int:
    """Return the index at which the blocks that begin at `place` end."""
    while length := data[place]:
        place += 1 + length
    return place + 1


def _gif_keeps(label: int, begins: bytes) -> bool:
    return label == GIF_CONTROL or (label == GIF_APPLICATION and begins in GIF_LOOPS)


def _unpack(form: str, data: bytes, place: int) -> tuple[Any, ...]:
    if place + struct.calcsize(form) > len(data):
        raise ValueError("the image is cut off")
    return struct.unpack_from(form, data, place)


_PARTS: Mapping[str, Callable[[bytes], Iterator[bytes]]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/webp": _webp,
    "image/gif": _gif,
}
