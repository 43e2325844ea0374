"""The arguments of a tool call, between the text that a model wrote and the object that a tool takes."""

from __future__ import annotations

import json
from typing import NoReturn

from agents.messages import Json, ToolCall


def read_arguments(text: str) -> Json:
    """Read them; text that is no JSON object is kept as {"_raw": text}, for the tool to refuse."""
    if not text.strip():
        return {}
    value = _loads(text)
    return value if isinstance(value, dict) else {"_raw": text}


def arguments_text(call: ToolCall) -> str:
    """Write them: as the model wrote them, byte for byte, unless they say something else by now (MSG-08)."""
    if _loads(call.raw) == call.arguments:
        return call.raw
    return json.dumps(call.arguments, ensure_ascii=False)


def _loads(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse)
    except ValueError:
        return None


def _refuse(constant: str) -> NoReturn:
    """NaN and Infinity are Python's, not JSON's: the next server would not take them back."""
    raise ValueError(constant)
