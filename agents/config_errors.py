"""What is wrong in a configuration file, in an operator's words: pydantic's describe its own types; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LIST = 'give a list, as in ["one", "two"]'
TABLE = 'give a table, as in {{ name = "value" }}'
NUMBER, WHOLE_NUMBER = "give a number", "give a whole number"
TEXT = "give a text"
SENTENCES: Mapping[str, str] = {
    "bool_parsing": "write true or false",
    "bool_type": "write true or false",
    "decimal_parsing": NUMBER,
    "decimal_type": NUMBER,
    "dict_type": TABLE,
    "extra_forbidden": "there is no such setting; remove it or correct its name",
    "finite_number": NUMBER,
    "float_parsing": NUMBER,
    "float_type": NUMBER,
    "greater_than": "give a number above {gt}",
    "greater_than_equal": "give a number from {ge} on",
    "int_from_float": WHOLE_NUMBER,
    "int_parsing": WHOLE_NUMBER,
    "int_type": WHOLE_NUMBER,
    "less_than": "give a number below {lt}",
    "less_than_equal": "give a number up to {le}",
    "list_type": LIST,
    "literal_error": "choose from {expected}",
    "missing": "this setting is missing; add it",
    "model_attributes_type": TABLE,
    "model_type": TABLE,
    "string_too_long": "give at most {max_length} characters",
    "string_too_short": "give at least {min_length} characters",
    "string_type": TEXT,
    "tuple_type": LIST,
}
# Where the value says nothing about the problem.
WITHOUT_VALUE = ("extra_forbidden", "missing")
LONGEST_VALUE = 100


def described(error: Mapping[str, Any], document: object) -> str:
    """Describe an error of pydantic in a document as "key: what is wrong and what to do; it is VALUE"."""
    sentence = SENTENCES.get(error["type"], "")
    words = sentence.format(**error.get("ctx", {})) if sentence else error["msg"].removeprefix("Value error, ")
    words = words.replace(" 1 characters", " 1 character")
    shown = repr(error["input"])
    says_value = isinstance(error["input"], str) and shown in words
    value = "" if error["type"] in WITHOUT_VALUE or says_value else f"; it is {shown:.{LONGEST_VALUE}}"
    return f"{_place(error['loc'], document)}: {words}{value}"


def _place(location: Sequence[str | int], document: object) -> str:
    """Return the path of a value in a document: without the names of types, which pydantic adds to it.

    The last part of one that is missing is its name.
    """
    parts: list[str] = []
    value: Any = document
    for index, part in enumerate(location, 1):
        is_inside = part in value if isinstance(value, dict) else isinstance(value, list) and isinstance(part, int)
        is_name = index == len(location) and part != "[key]" and isinstance(value, dict)
        if not (is_inside or is_name):
            continue
        value = value[part] if is_inside else None
        parts.append(str(part))
    return ".".join(parts) or "the file"
