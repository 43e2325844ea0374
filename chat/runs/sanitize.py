"""Make output of a model storable in every database, so that its row can always be written (MSG-12)."""

from __future__ import annotations

import math
from dataclasses import astuple
from typing import Any

from agents.events import Usage
from agents.safe_text import TOO_DEEP, clean

# The size of the columns for names and ids.
LONGEST_NAME = 200
# No tool needs more, and recursive code stays far from the recursion limit.
MAX_DEPTH = 100
MOST_TOKENS = 2**48


def sanitize_name(text: str) -> str:
    return clean(text)[:LONGEST_NAME]


def sanitize_json(value: Any, depth: int = 0) -> Any:
    """Replace what databases reject in a JSON value: NUL, lone surrogates, NaN, infinities, and too deep nesting."""
    match value:
        case str():
            return clean(value)
        case float() if not math.isfinite(value):
            return str(value)
        case dict() | list() if depth == MAX_DEPTH:
            return TOO_DEEP
        case dict():
            return {clean(str(key)): sanitize_json(item, depth + 1) for key, item in value.items()}
        case list():
            return [sanitize_json(item, depth + 1) for item in value]
        case _:
            return value


def sanitize_usage(usage: Usage) -> Usage:
    """Replace counts that are not sensible integers by None, because some servers send such."""
    return Usage(*(count if type(count) is int and 0 <= count <= MOST_TOKENS else None for count in astuple(usage)))
