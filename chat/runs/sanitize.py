"""What a model says, in a form that every database keeps: whatever it says, its row can be written (MSG-12)."""

from __future__ import annotations

import math
from dataclasses import astuple
from typing import Any

from agents.events import Usage
from agents.safe_text import TOO_DEEP, clean

# What the columns for names and ids hold.
LONGEST_NAME = 200
# No tool nests deeper than this, and code that walks the value stays far from the recursion limit.
MAX_DEPTH = 100
MOST_TOKENS = 2**48


def storable_name(text: str) -> str:
    return clean(text)[:LONGEST_NAME]


def storable(value: Any, depth: int = 0) -> Any:
    """The same JSON without NUL, lone surrogates, NaN, infinities and bottomless nesting."""
    match value:
        case str():
            return clean(value)
        case float() if not math.isfinite(value):
            return str(value)
        case dict() | list() if depth == MAX_DEPTH:
            return TOO_DEEP
        case dict():
            return {clean(str(key)): storable(item, depth + 1) for key, item in value.items()}
        case list():
            return [storable(item, depth + 1) for item in value]
        case _:
            return value


def storable_usage(usage: Usage) -> Usage:
    """The counts that are counts: some servers send others."""
    return Usage(*(count if type(count) is int and 0 <= count <= MOST_TOKENS else None for count in astuple(usage)))
