"""Parse the frames of clients into commands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, get_args

from django.conf import settings
from pydantic import Field, TypeAdapter, ValidationError

from chat import long_json
from chat.commands import COMMANDS, MAX_SYSTEM_PROMPT_LENGTH, Command

# JSON in UTF-8 takes up to six bytes for a character, for example \u0001.
BYTES_PER_CHARACTER = 6
# Bytes for the other fields of a command.
FRAME_OVERHEAD = 256 * 1024
# The part of a frame in which its `ref` is searched if the frame cannot be read.
START = 1_000
_REF = re.compile(r'"ref"\s*:\s*"([^"\\]{1,200})"')
# The longest error message, in characters. It can repeat what was sent.
MAX_EXPLANATION_LENGTH = 300


def longest_frame() -> int:
    """Return the size in bytes of the longest frame that a client may send: the longest message fits."""
    longest_text: int = max(settings.MAX_MESSAGE_CHARS, MAX_SYSTEM_PROMPT_LENGTH)
    return BYTES_PER_CHARACTER * longest_text + FRAME_OVERHEAD


class MalformedCommand(ValueError):
    """The frame is not a command, for the reason in the message. `ref` is that of the frame, if it has one."""

    def __init__(self, message: str, ref: str | None = None) -> None:
        super().__init__(message)
        self.ref = ref


# Read by the `type` of the frame. Pydantic lists the types in this order in an error.
_ANY: Any = Annotated[reduce(or_, COMMANDS), Field(discriminator="type")]
_adapter: TypeAdapter[Command] = TypeAdapter(_ANY)
# The types of all commands, which pydantic includes in the location of an error.
_TYPES = {name for kind in COMMANDS for name in get_args(kind.model_fields["type"].annotation)}


def parse(frame: str | bytes) -> Command:
    """Parse a frame. Raise MalformedCommand if it is not a JSON object with a known type and valid fields."""
    if isinstance(frame, bytes) or len(frame) > longest_frame():
        raise MalformedCommand(f"Commands must be JSON texts of at most {longest_frame()} bytes.")
    try:
        data = long_json.loads(frame)
    except long_json.TooManyLongValues:
        raise MalformedCommand("The frame is too long. Only text fields may be long.", _probable_ref(frame)) from None
    except (ValueError, RecursionError):
        raise MalformedCommand("The frame is not JSON.", _probable_ref(frame)) from None
    if not isinstance(data, dict):
        raise MalformedCommand("The frame is not a JSON object.")
    return command_of(data)


def command_of(data: dict[str, Any]) -> Command:
    """Return a command from parsed JSON. Raise MalformedCommand for an unknown type, or missing or wrong fields."""
    try:
        return _adapter.validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"] if part not in _TYPES) or "type"
        explanation = f"{place}: {problem_of(first)}"[:MAX_EXPLANATION_LENGTH]
        ref = data.get("ref")
        has_ref = isinstance(ref, str) and len(ref) <= 200
        raise MalformedCommand(explanation, ref if has_ref else None) from None


def _probable_ref(frame: str) -> str | None:
    """Return the `ref` at the beginning of a frame that cannot be parsed, so that its client gets the error."""
    found = _REF.search(frame, 0, START)
    return found[1] if found else None


def problem_of(found: Mapping[str, Any]) -> str:
    """Return the problem with a field as an English sentence for developers, from an error of Pydantic's."""
    match found["type"]:
        case "missing" | "union_tag_not_found":
            return "This field is required."
        case "extra_forbidden":
            return "Unknown field."
        case "union_tag_invalid":
            return f"It must be one of {found['ctx']['expected_tags']}."
    return f"{str(found['msg']).removeprefix('Value error, ').rstrip('.')}."
