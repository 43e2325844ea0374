"""The lookup of models in tables whose keys are names and patterns of names."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TypeVar

Fact = TypeVar("Fact")


def find_fact(model: str, table: Mapping[str, Fact]) -> Fact | None:
    """Return the table's value for a model, or None. An exact name takes precedence, then the longest matching pattern.

    In a pattern, `*` matches any text. A name with a path, as routers use it ("openai/gpt-4o"), is looked up as a whole
    first, and then without its first parts.
    """
    name = model.lower()
    found = _find_by_name(name, table)
    while found is None and "/" in name:
        name = name.partition("/")[2]
        found = _find_by_name(name, table)
    return found


def _find_by_name(name: str, table: Mapping[str, Fact]) -> Fact | None:
    if name in table:
        return table[name]
    pattern = _longest_match(name, tuple(table))
    return table[pattern] if pattern is not None else None


@lru_cache(maxsize=512)
def _longest_match(name: str, patterns: tuple[str, ...]) -> str | None:
    """Return the longest matching pattern, or None. Cached because each request looks up a name in several tables."""
    return max((pattern for pattern in patterns if fnmatchcase(name, pattern)), key=len, default=None)
