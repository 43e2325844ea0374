"""Messages for errors in a configuration file. They replace those of pydantic, which describe Python types. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LIST = 'must be a list, such as ["one", "two"]'
TABLE = 'must be a table, such as {{ name = "value" }}'
NUMBER, WHOLE_NUMBER = "must be a number", "must be a whole number"
TEXT = "must be a string"
# By pydantic's type of error. The placeholders are filled from the error's context.
SENTENCES: Mapping[str, str] = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "decimal_parsing": NUMBER,
    "decimal_type": NUMBER,
    "dict_type": TABLE,
    "extra_forbidden": "unknown setting; remove it or correct its name",
    "finite_number": NUMBER,
    "float_parsing": NUMBER,
    "float_type": NUMBER,
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be {ge} or more",
    "int_from_float": WHOLE_NUMBER,
    "int_parsing": WHOLE_NUMBER,
    "int_type": WHOLE_NUMBER,
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be {le} or less",
    "list_type": LIST,
    "literal_error": "must be one of {expected}",
    "missing": "missing; add this setting",
    "model_attributes_type": TABLE,
    "model_type": TABLE,
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
    "string_type": TEXT,
    "tuple_type": LIST,
}
# Types of errors that are reported without the value, because it would not help.
WITHOUT_VALUE = ("extra_forbidden", "missing")
MAX_VALUE_LENGTH = 100


def describe(error: Mapping[str, Any], document: object) -> str:
    """Describe an error of pydantic as "key: what is wrong and what to do; it is VALUE"."""
    sentence = SENTENCES.get(error["type"], "")
    words = sentence.format(**error.get("ctx", {})) if sentence else error["msg"].removeprefix("Value error, ")
    words = words.replace(" 1 characters", " 1 character")
    shown = repr(error["input"])
    says_value = isinstance(error["input"], str) and shown in words
    value = "" if error["type"] in WITHOUT_VALUE or says_value else f", but is {shown:.{MAX_VALUE_LENGTH}}"
    return f"{_place(error['loc'], document)}: {words}{value}"


def _place(location: Sequence[str | int], document: object) -> str:
    """Return the dotted path of a value in the document, without the names of types that pydantic adds to it.

    If the value is missing in the document, the last part of its path is its name.
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
