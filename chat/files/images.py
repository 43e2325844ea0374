"""Verify, measure, rotate, clean and scale images."""

from __future__ import annotations

import struct
from io import BytesIO
from typing import Any

from PIL import Image, ImageOps

from chat.files.contents import MODEL_SIDE, Contents, Unusable, serves_as_it_is
from chat.files.stripping import scans, strip_metadata

FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
JPEG = b"\xff\xd8"
# A decoded image takes four bytes per pixel.
MAX_PIXELS = 50_000_000
# A progressive JPEG passes over its pixels about ten times. One with thousands of passes would occupy a core for hours.
MAX_SCANNED = 20 * MAX_PIXELS
THUMB = 640
ORIENTATION = 0x0112
UPRIGHT = 1
# Errors that Pillow raises for damaged files.
BROKEN = (OSError, ValueError, SyntaxError, EOFError, IndexError, struct.error, Image.DecompressionBombError)


def read(data: bytes) -> Contents:
    """Read an image. Raise Unusable."""
    try:
        with Image.open(BytesIO(data), formats=list(FORMATS)) as image:
            require_readable(image, data)
            return _contents(image, data)
    except Image.DecompressionBombError:
        raise Unusable("too_many_pixels") from None
    except BROKEN:
        raise Unusable("broken_image") from None


def square(data: bytes, side: int) -> bytes:
    """Return an image as a square WebP for a profile picture. `side` is in pixels. Raise Unusable."""
    try:
        with Image.open(BytesIO(data), formats=list(FORMATS)) as image:
            require_readable(image, data)
            image.draft("RGB", (2 * side, 2 * side))  # a JPEG need not be decoded in its full size
            upright = ImageOps.exif_transpose(image).convert("RGBA")
    except Image.DecompressionBombError:
        raise Unusable("too_many_pixels") from None
    except BROKEN:
        raise Unusable("broken_image") from None
    out = BytesIO()
    ImageOps.fit(upright, (side, side)).save(out, "WEBP", quality=85)
    return out.getvalue()


def require_readable(image: Image.Image, data: bytes) -> None:
    """Raise Unusable if decoding an opened image would take too much memory or CPU time."""
    pixels = image.width * image.height
    times = scans(data) if data.startswith(JPEG) else 1
    if pixels > MAX_PIXELS or pixels * times > MAX_SCANNED:
        raise Unusable("too_many_pixels")


def _contents(image: Image.Image, data: bytes) -> Contents:
    kind = "JPEG" if image.format == "MPO" else image.format or ""  # MPO: a JPEG that is followed by more images
    image.load()
    turned = image.getexif().get(ORIENTATION, UPRIGHT) != UPRIGHT
    upright = ImageOps.exif_transpose(image) if turned else image
    kept = _encode(upright, kind) if turned else _without_metadata(image, data, kind)
    small = _fitted(upright, MODEL_SIDE)
    as_it_is = serves_as_it_is(FORMATS[kind], upright.size, len(kept))
    return Contents(
        kind="image",
        media_type=FORMATS[kind],
        data=kept,
        width=upright.width,
        height=upright.height,
        thumb=_encode(_fitted(small, THUMB), "WEBP", quality=80),
        model_image=b"" if as_it_is else _encode(_on_white(small), "JPEG", quality=88),
    )


def _without_metadata(image: Image.Image, data: bytes, kind: str) -> bytes:
    try:
        return strip_metadata(data, FORMATS[kind])
    except (ValueError, IndexError):
        return _encode(image, kind)  # Pillow reads more variants than `strip_metadata`, and writes no metadata


def _encode(image: Image.Image, kind: str, **options: Any) -> bytes:
    out = BytesIO()
    lossy = {"quality": 92, "comment": b""} if kind == "JPEG" else {"quality": 90} if kind == "WEBP" else {}
    profile = image.info.get("icc_profile")
    image.save(out, kind, **lossy | ({"icc_profile": profile} if profile else {}) | options)
    return out.getvalue()


def _fitted(image: Image.Image, longest: int) -> Image.Image:
    """Return a copy whose sides have at most `longest` pixels, in a mode that scales well and suits any format."""
    if image.mode.startswith("I"):  # 16 bits per pixel; converting without scaling would turn nearly all of it white
        image = image.convert("I").point(lambda value: value / 256).convert("L")
    small = image.convert("RGBA" if image.has_transparency_data else "RGB")
    small.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    return small


def _on_white(image: Image.Image) -> Image.Image:
    if image.mode != "RGBA":
        return image
    white = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(white, image).convert("RGB")
