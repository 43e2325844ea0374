"""What agents see of a workspace's knowledge: files as passages of text, which can be searched and read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

# The address of a passage, which Parley serves itself.
_ADDRESS = re.compile(r"/knowledge/[A-Za-z0-9_]{1,64}\?passage=[1-9][0-9]{0,6}")


@dataclass(frozen=True, slots=True)
class File:
    """A file that an agent may read. `passages` counts its pieces."""

    id: str
    name: str
    passages: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a file; `number` counts from 1. `page` is that of a PDF file."""

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
    """The files that a session's agent may use. Its methods raise ToolError for what the model can correct."""

    files: Sequence[File]

    async def search(self, query: str, most: int, file: str = "") -> list[Passage]:
        """Return the passages that fit the query best, the best first; `file` is the name of the only one to search."""

    async def read(self, file: str, start: int, most: int) -> list[Passage]:
        """Return passages of the file of this name, from number `start` on."""


def is_address(url: object) -> bool:
    """Whether this is the address of a passage."""
    return isinstance(url, str) and bool(_ADDRESS.fullmatch(url))
