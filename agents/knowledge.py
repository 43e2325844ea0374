"""A workspace's knowledge as agents see it: files in passages of text, which can be searched and read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

# The address of a passage, below Parley's own address.
_ADDRESS = re.compile(r"/knowledge/[A-Za-z0-9_]{1,64}\?passage=[1-9][0-9]{0,6}")


@dataclass(frozen=True, slots=True)
class File:
    """A file that an agent may read. `passages` is their number."""

    id: str
    name: str
    passages: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a file's text. `number` counts from 1. `page` is its page in a PDF file, None for other files."""

    file: File
    number: int
    page: int | None
    text: str

    @property
    def address(self) -> str:
        return f"/knowledge/{self.file.id}?passage={self.number}"

    @property
    def title(self) -> str:
        return f"{self.file.name}, page {self.page}" if self.page else self.file.name


class Knowledge(Protocol):
    """The files that a session's agent may use. The methods raise ToolError for mistakes that the model can correct."""

    files: Sequence[File]

    async def search(self, query: str, most: int, file: str = "") -> list[Passage]:
        """Return at most `most` passages, the best match first. If `file` is not "", search only the file so named."""

    async def read(self, file: str, start: int, most: int) -> list[Passage]:
        """Return at most `most` passages of the file with this name, from number `start` on."""


def is_address(url: object) -> bool:
    """Return whether this is the address of a passage."""
    return isinstance(url, str) and bool(_ADDRESS.fullmatch(url))
