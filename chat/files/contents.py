"""The validated content of a file, or the reason why it is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# In pixels and bytes. Vendors scale larger images down after they have received them, and take at most 5 MB as base64.
MODEL_SIDE = 1568
MODEL_BYTES = 3_500_000
# Formats that every vision API accepts.
MODEL_TYPES = {"image/png", "image/jpeg"}
Kind = Literal["image", "text", "pdf"]
Problem = Literal[
    "empty",
    "unsupported",
    "broken_image",
    "too_many_pixels",
    "broken_pdf",
    "locked_pdf",
    "unavailable",
    "no_text",
    "too_complex",
]


@dataclass(frozen=True, slots=True)
class Contents:
    """A usable file. `data` is the data to store; `text` is for models that do not accept such files.

    `thumb` and `model_image` are an image's smaller forms (WebP and JPEG). They are empty if the image itself can be
    used.
    """

    kind: Kind
    media_type: str
    data: bytes
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    text: str = ""
    thumb: bytes = b""
    model_image: bytes = b""


class Unusable(Exception):  # describes the file
    """The file is refused. `problem` is the reason."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


def serves_as_it_is(media_type: str, size: tuple[int, int], length: int) -> bool:
    """Return whether models get the image itself instead of a smaller form. `size` is in pixels, `length` in bytes."""
    return media_type in MODEL_TYPES and max(size) <= MODEL_SIDE and length <= MODEL_BYTES
