"""Detect a file's type from its first bytes and read it. Its name and the browser's media type are ignored."""

from __future__ import annotations

from chat.files import image_processes, pdf, plain
from chat.files.contents import Contents, Unusable

PDF = b"%PDF-"
IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
_SHOWN = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    PDF: "application/pdf",
}
_PLAYED = {
    b"ID3": "audio/mpeg",
    b"\xff\xfb": "audio/mpeg",
    b"\xff\xf3": "audio/mpeg",
    b"OggS": "audio/ogg",
    b"fLaC": "audio/flac",
}


def read(data: bytes) -> Contents:
    """Read a file. Raise Unusable. May take seconds, and wait for other files."""
    if not data.strip():
        raise Unusable("empty")
    if data.startswith(PDF):
        return pdf.read(data)
    if data.startswith(IMAGES) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP"):
        return image_processes.read(data)
    return plain.read(data)


def audio_type(beginning: bytes) -> str:
    """Return the media type of audio that browsers can play, or "" for anything else. Sixteen bytes are enough."""
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WAVE":
        return "audio/wav"
    if beginning[4:8] == b"ftyp" and beginning[8:11] == b"M4A":
        return "audio/mp4"
    return next((media_type for first, media_type in _PLAYED.items() if beginning.startswith(first)), "")


def browser_type(beginning: bytes) -> str:
    """Return the media type of a file that browsers show without running code in it, or "" for anything else.

    Sixteen bytes are enough. SVG and HTML can contain scripts, so they are treated as text.
    """
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for first, media_type in _SHOWN.items() if beginning.startswith(first)), "")
