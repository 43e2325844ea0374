"""Images: validated, measured, stripped of other data, and scaled down."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO

import pytest
from PIL import Image

from agents.process_pool import Limits, ProcessPool
from chat.files import image_processes, images
from chat.files.contents import Unusable
from chat.files.sniffing import read
from chat.files.stripping import scans
from tests.support.files import PLACE, animation, often, picture

KINDS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}


def opened(data: bytes) -> Image.Image:
    image = Image.open(BytesIO(data))
    image.load()
    return image


def claimed(width: int, height: int) -> bytes:
    """Return a PNG that claims this size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_is_measured_and_made_small(kind: str) -> None:
    """UI-09: the size is read from its data."""
    contents = read(picture(kind, (1200, 900)))
    assert (contents.kind, contents.media_type) == ("image", KINDS[kind])
    assert (contents.width, contents.height) == (1200, 900)
    thumb = opened(contents.thumb)
    assert (thumb.format, thumb.size) == ("WEBP", (640, 480))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_image_is_taken_out_and_no_pixel_changes(kind: str) -> None:
    """MSG-12: the location and any data after the image are removed."""
    before = picture(kind)
    kept = read(before + b"<script>alert(1)</script>PK\x03\x04").data
    assert PLACE.encode() not in kept
    assert b"script" not in kept
    assert not opened(kept).getexif()
    assert opened(kept).convert("RGB").tobytes() == opened(before).convert("RGB").tobytes()


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_animations_go_on_moving(kind: str) -> None:
    """An animated image stays animated (MSG-12)."""
    kept = read(animation(kind)).data
    assert PLACE.encode() not in kept
    assert getattr(opened(kept), "n_frames", 1) == 2
    assert opened(kept).info.get("loop") == 0


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "PNG"])
def test_a_picture_taken_sideways_is_set_upright(kind: str) -> None:
    """UI-09: the pixels are turned, and the orientation is removed, so that models and browsers show the same."""
    contents = read(picture(kind, (80, 60), turned=6))
    kept = opened(contents.data)
    assert (contents.width, contents.height) == kept.size == (60, 80)
    red, green, blue = kept.convert("RGB").getpixel((55, 4))  # type: ignore[misc]  # RGB has three
    assert (red > 200, green < 60, blue < 60) == (True, True, True)
    assert not kept.getexif()


def test_models_get_a_smaller_form_of_what_is_large_or_unusual() -> None:
    """Models get a smaller, common form of large or unusual images (CTX-01)."""
    assert read(picture("PNG")).model_image == b""
    large = opened(read(picture("JPEG", (3000, 1000))).model_image)
    assert (large.format, large.size) == ("JPEG", (1568, 523))
    assert opened(read(picture("GIF")).model_image).format == "JPEG"


def test_transparency_and_sixteen_bits_stay_visible() -> None:
    """MSG-12: derived forms show transparency as white, and scale sixteen bits down to eight."""
    out = BytesIO()
    Image.new("RGBA", (10, 10), (0, 0, 0, 0)).save(out, "WEBP", lossless=True)
    assert opened(read(out.getvalue()).model_image).convert("RGB").getpixel((5, 5)) == (255, 255, 255)
    out = BytesIO()
    Image.new("I;16", (10, 10), 20_000).save(out, "PNG")
    level = opened(read(out.getvalue()).thumb).convert("L").getpixel((5, 5))
    assert isinstance(level, int)
    assert 60 < level < 100


@pytest.mark.parametrize("size", [(8000, 8000), (30_000, 30_000)])
def test_an_image_that_would_fill_the_memory_is_refused(size: tuple[int, int]) -> None:
    """MSG-12: the image is refused before it is decoded."""
    with pytest.raises(Unusable, match="too_many_pixels"):
        read(claimed(*size))


def test_an_image_that_would_keep_a_core_is_refused() -> None:
    """MSG-12: two hundred scans of 49 million pixels take half a minute; a large photograph's scans are accepted."""
    with pytest.raises(Unusable, match="too_many_pixels"):
        read(often(200))
    assert read(often(200, (300, 200))).width == 300


def test_scans_are_not_hidden_behind_markers_that_mean_nothing() -> None:
    """MSG-12: markers that decoders skip are skipped."""
    data = often(30, (80, 60))
    at = data.index(b"\xff\xdb")
    assert (scans(data), scans(data[:at] + b"\xff\x01\x7f\xf0" + data[at:])) == (30, 30)


def test_a_photograph_with_others_behind_it_is_a_photograph() -> None:
    """UI-09: phones append further images, such as the other eye's view or a depth map."""
    out = BytesIO()
    Image.new("RGB", (80, 60), "red").save(out, "MPO", save_all=True, append_images=[Image.new("RGB", (80, 60))])
    contents = read(out.getvalue())
    assert (contents.media_type, contents.width) == ("image/jpeg", 80)
    assert (opened(contents.data).format, opened(contents.thumb).size) == ("JPEG", (80, 60))


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_images_are_refused(kind: str) -> None:
    """MSG-12: truncated or corrupted anywhere, an image is refused or read, but never causes another error."""
    whole = picture(kind, (300, 200))
    for place in range(12, len(whole) - 1, max(1, len(whole) // 60)):
        for broken in (whole[:place], whole[:place] + b"\xff\x00\x7f" + whole[place + 3 :]):
            try:
                read(broken)
            except Unusable as error:
                assert error.problem in {"broken_image", "too_many_pixels"}  # noqa: PT017  # both are correct


def test_an_image_whose_metadata_cannot_be_stripped_is_encoded_again() -> None:
    """An image whose metadata can't be stripped is encoded again (MSG-12)."""
    without_end = picture("JPEG")[:-2]
    with Image.open(BytesIO(picture("JPEG"))) as image:
        image.load()
        kept = images._without_metadata(image, without_end, "JPEG")
    assert PLACE.encode() not in kept
    assert opened(kept).size == (80, 60)


def test_an_image_that_reaches_the_limits_of_its_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-12: the image is refused, whatever a decoder does with it; the next image is read."""
    limits = Limits(cpu_seconds=5, seconds=20, memory_mb=100, output_bytes=1_000_000, queue_seconds=20)
    monkeypatch.setattr(image_processes, "_processes", ProcessPool("chat.files.images_child", limits, size=1))
    with pytest.raises(Unusable, match="too_many_pixels"):
        read(picture("PNG", (5000, 5000)))
    assert read(picture("PNG")).width == 80
