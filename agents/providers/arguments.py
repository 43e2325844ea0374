"""The arguments of a tool call, between the text that a model wrote and the object that a tool takes."""

from __future__ import annotations

import json
from typing import NoReturn

from agents.messages import UNREADABLE, Json, ToolCall


def read_arguments(text: str) -> Json:
    """Read them; text that is no JSON object is kept as {UNREADABLE: text}, for the tool to refuse."""
    if not text.strip():
        return {}
    value = _loads(text)
    return value if isinstance(value, dict) else {UNREADABLE: text}


def arguments_text(call: ToolCall) -> str:
    """Write them: as the model wrote them, byte for byte, unless they say something else by now (MSG-08)."""
    if _agree(_loads(call.raw), call.arguments):
        return call.raw
    return json.dumps(call.arguments, ensure_ascii=False)


def still_says(raw: str, arguments: Json) -> bool:
    """Whether the text that a model wrote is what these arguments were read from: an edit wins over it."""
    return bool(raw) and _agree(read_arguments(raw), arguments)


def _agree(one: object, other: object) -> bool:
    try:
        return _same(one, other)
    except RecursionError:
        return False


def _same(one: object, other: object) -> bool:
    """Equality as JSON has it: true is not 1, but 1 and 1.0 are the same number (databases write one for the other)."""
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
    """NaN and Infinity are Python's, not JSON's: the next server would not take them back."""
    raise ValueError(constant)
