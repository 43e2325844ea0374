"""Detect a file's type by its first bytes and read it; its name and the browser's media type are ignored."""

from __future__ import annotations

from chat.files import image_processes, pdf, plain
from chat.files.contents import Contents, Unusable

PDF = b"%PDF-"
IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")


def read(data: bytes) -> Contents:
    """Read a file. Raises Unusable. May take seconds, and wait for other files."""
    if not data.strip():
        raise Unusable("empty")
    if data.startswith(PDF):
        return pdf.read(data)
    if data.startswith(IMAGES) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP"):
        return image_processes.read(data)
    return plain.read(data)
