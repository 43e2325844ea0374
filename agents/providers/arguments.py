"""The arguments of a tool call, as the text that a model wrote and as the object that a tool takes."""

from __future__ import annotations

import json
from typing import NoReturn

from agents.messages import UNREADABLE, Json, ToolCall


def read_arguments(text: str) -> Json:
    """Return the arguments as an object. Other text becomes {UNREADABLE: text}, which the tool refuses."""
    if not text.strip():
        return {}
    value = _loads(text)
    return value if isinstance(value, dict) else {UNREADABLE: text}


def arguments_text(call: ToolCall) -> str:
    """Return the arguments as JSON text. Unless they were edited, it is exactly the model's own text (MSG-08)."""
    if _agree(_loads(call.raw), call.arguments):
        return call.raw
    return json.dumps(call.arguments, ensure_ascii=False)


def is_unedited(raw: str, arguments: Json) -> bool:
    """Return whether these arguments are still those of the model's text. False after an edit."""
    return bool(raw) and _agree(read_arguments(raw), arguments)


def _agree(one: object, other: object) -> bool:
    try:
        return _same(one, other)
    except RecursionError:
        return False


def _same(one: object, other: object) -> bool:
    """Return whether two JSON values are equal. 1 equals 1.0, because databases may change one to the other; 1 is not
    equal to true.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _loads(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> NoReturn:
    """Raise ValueError for NaN and Infinity, which are not JSON, so the next server would refuse them."""
    raise ValueError(constant)
