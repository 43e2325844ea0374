"""Sanitizing of a model's output, so that every database can store its row (MSG-12)."""

from __future__ import annotations

import math
from typing import Any

from agents.safe_text import TOO_DEEP, clean

# In characters: the size of the columns for names and ids.
MAX_NAME_LENGTH = 200
# The deepest nesting of JSON. No tool needs more, and recursive code stays below the recursion limit.
MAX_DEPTH = 100


def sanitize_name(text: str) -> str:
    return clean(text)[:MAX_NAME_LENGTH]


def sanitize_json(value: Any, depth: int = 0) -> Any:
    """Return a JSON value without NUL, lone surrogates, NaN, infinities or deep nesting, which databases reject."""
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
