"""Files in memory like those that users attach."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from PIL import Image, ImageDraw
from PIL.Image import Exif
from pypdf import PdfWriter

PLACE = "37.7749 N"
GPS = 0x8825
ORIENTATION = 0x0112
# A minimal page of a PDF file, with the given text.
PDF_PAGE = (
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents %d 0 R /Resources << /Font << /F 3 0 R >> >> >>"
)


def picture(kind: str = "PNG", size: tuple[int, int] = (80, 60), *, turned: int = 1, **options: Any) -> bytes:
    """Return an image whose top left corner is red, with a location and an orientation in its EXIF data."""
    image = Image.new("RGB", size, "white")
    ImageDraw.Draw(image).rectangle((0, 0, size[0] // 4, size[1] // 4), fill="red")
    out = BytesIO()
    if kind in {"JPEG", "WEBP", "PNG"}:
        options["exif"] = _taken(turned)
    image.save(out, kind, **options)
    return out.getvalue()


def _taken(turned: int) -> Exif:
    exif = Exif()
    exif[ORIENTATION] = turned
    exif[0x010E] = PLACE
    exif.get_ifd(GPS)[1] = "N"
    return exif


def often(times: int, size: tuple[int, int] = (7000, 7000)) -> bytes:
    """Return a JPEG with this many scans over its pixels. Each additional scan has less than a hundred bytes."""
    out = BytesIO()
    Image.new("RGB", size, "white").save(out, "JPEG", progressive=True)
    data = out.getvalue()
    last = data[data.rfind(b"\xff\xda") : -2]
    return data[:-2] + last * (times - data.count(b"\xff\xda")) + data[-2:]


def animation(kind: str = "GIF") -> bytes:
    """Return an animation of two frames, with a comment or EXIF data, depending on the format."""
    frames = [Image.new("RGB", (20, 10), color) for color in ("red", "blue")]
    out = BytesIO()
    options = {"comment": PLACE.encode()} if kind == "GIF" else {"exif": _taken(1)}
    frames[0].save(out, kind, save_all=True, append_images=frames[1:], duration=100, loop=0, **options)
    return out.getvalue()


def pdf(*pages: str) -> bytes:
    """Return a PDF file with these texts, one per page."""
    bodies = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    numbers = []
    for text in pages:
        drawn = b"BT /F 12 Tf 20 100 Td (%s) Tj ET" % text.encode()
        bodies.append(b"<< /Length %d >> stream\n%s\nendstream" % (len(drawn), drawn))
        bodies.append(PDF_PAGE % len(bodies))
        numbers.append(b"%d 0 R" % len(bodies))
    bodies[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(pages), b" ".join(numbers))
    return _assembled(bodies)


def _assembled(bodies: list[bytes]) -> bytes:
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(bodies, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(bodies) + 1)
    trailer = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(bodies) + 1, len(out))
    return out + head + table + trailer


def locked_pdf(password: str) -> bytes:
    """Return a PDF file with a password. With "", everyone can read it, but its permissions forbid changes."""
    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    writer.encrypt(password, owner_password="owner", algorithm="AES-256")
    out = BytesIO()
    writer.write(out)
    return out.getvalue()
