"""Attachments as messages show them: images with a size that is known before they load, other files by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chat.snapshots import AttachmentSnapshot

# The largest size of a single image, in CSS pixels.
MAX_SIZE = (360, 320)
MAX_ENDING_LENGTH = 12


@dataclass(frozen=True, slots=True)
class Picture:
    """An image. `width` and `height` are its size on the page in CSS pixels if it is the only image."""

    id: str
    name: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Document:
    """A file that is not an image. The page may shorten the `stem` of its name, but not its `ending`."""

    id: str
    name: str
    stem: str
    ending: str
    kind: str
    size: int
    pages: int | None


@dataclass(frozen=True, slots=True)
class Attached:
    """All files of a message, in the sender's order."""

    pictures: list[Picture]
    documents: list[Document]


def split_files(files: Iterable[AttachmentSnapshot]) -> Attached:
    """Split the files of a message into images and others."""
    files = list(files)
    return Attached(
        [_picture(file) for file in files if file.kind == "image"],
        [_document(file) for file in files if file.kind != "image"],
    )


def _picture(file: AttachmentSnapshot) -> Picture:
    width, height = file.width or MAX_SIZE[0], file.height or MAX_SIZE[1]
    scale = min(1, MAX_SIZE[0] / width, MAX_SIZE[1] / height)
    return Picture(file.id, file.name, max(1, round(width * scale)), max(1, round(height * scale)))


def _document(file: AttachmentSnapshot) -> Document:
    stem, dot, ending = file.name.rpartition(".")
    if not stem or len(ending) > MAX_ENDING_LENGTH:
        stem, dot, ending = file.name, "", ""
    return Document(file.id, file.name, stem, dot + ending, file.kind, file.size, file.pages)
