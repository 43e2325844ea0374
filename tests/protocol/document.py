"""A parser for docs/protocol.md, whose contents tests compare with the code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/protocol.md").read_text()
WORD = re.compile(r"`([a-z_]+)\??`")
# The mark for an omission in an example.
WHATEVER = {"…": "…"}


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading, without its header."""
    section = re.split(r"\n#+ ", TEXT.partition(f"# {heading}\n")[2])[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[2:]]


def names(heading: str, column: int = 0) -> list[str]:
    """Return the names in backquotes in a column of a table."""
    return [name for row in rows(heading) for name in WORD.findall(row[column])]


def exchange() -> list[tuple[str, Any]]:
    """Return the frames of the example with their directions: ">" from the client, "<" from the server."""
    return [(line[0], _read(line[2:])) for line in _example("exchange")]


def updates() -> list[Any]:
    """Return the updates in the example of a stream of steps."""
    return [_read(line.removeprefix("data: ")) for line in _example("steps") if line.startswith("data: ")]


def _example(name: str) -> list[str]:
    return TEXT.partition(f"```{name}\n")[2].partition("```")[0].splitlines()


def _read(frame: str) -> Any:
    return json.loads(frame.replace("{…}", json.dumps(WHATEVER)))


def shape(value: Any) -> Any:
    """Return the structure of a value, with types in place of values."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return type(value).__name__


def is_like(said: Any, real: Any) -> bool:
    """Return whether an example has the shape of a real frame, apart from omissions."""
    if said == shape(WHATEVER):
        return isinstance(real, dict)
    if isinstance(said, dict) and isinstance(real, dict):
        return said.keys() == real.keys() and all(is_like(said[name], real[name]) for name in said)
    if isinstance(said, list) and isinstance(real, list):
        return len(said) == len(real) and all(map(is_like, said, real))
    return bool(said == real)
