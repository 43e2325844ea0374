"""Facts about models in tables of their names and of patterns of names."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TypeVar

Fact = TypeVar("Fact")


def known(model: str, table: Mapping[str, Fact]) -> Fact | None:
    """Find what a table says of a model: an exact name wins, then the longest pattern (`*` any text) that matches.

    A name with a path before it, as routers have ("openai/gpt-4o"), is looked up whole first and then by its last part.
    """
    name = model.lower()
    whole = _known(name, table)
    return whole if whole is not None else _known(name.rpartition("/")[2], table)


def _known(name: str, table: Mapping[str, Fact]) -> Fact | None:
    if name in table:
        return table[name]
    pattern = _longest_match(name, tuple(table))
    return table[pattern] if pattern is not None else None


@lru_cache(maxsize=512)
def _longest_match(name: str, patterns: tuple[str, ...]) -> str | None:
    """Return the longest of the patterns that match. Each request asks several tables about one name."""
    return max((pattern for pattern in patterns if fnmatchcase(name, pattern)), key=len, default=None)
