"""What a file turns out to be, or why it cannot be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["image", "text", "pdf"]
Problem = Literal["empty", "unsupported", "broken_image", "too_many_pixels", "broken_pdf", "locked_pdf", "unavailable"]


@dataclass(frozen=True, slots=True)
class Contents:
    """A file that can be used. `data` is what is kept of it; `text` is what a model reads that takes no such file.

    `thumb` and `model_image` are an image's smaller forms (WebP, JPEG); empty where the image itself serves.
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


class Unusable(Exception):  # an answer about a file, not a failure of ours
    """The file cannot be taken; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem
