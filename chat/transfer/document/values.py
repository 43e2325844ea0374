"""Types of a document's values. They are limited to values that can be stored and shown."""

from __future__ import annotations

import json
import math
import string
from collections.abc import Iterable
from dataclasses import fields
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter
from pydantic_core import PydanticCustomError

from agents.safe_text import clean
from chat.snapshots import MessageSnapshot

MAX_CHARS = 10_000_000
MAX_INTEGER = 2**53
MAX_DEPTH = 100
# Times in other years are errors, and may not exist in every time zone.
YEARS = range(1970, 2200)


def _storable(text: str) -> str:
    if clean(text) != text:
        raise PydanticCustomError("unstorable", "holds NUL characters or broken Unicode")
    return text


def _json(value: Any, depth: int = 0) -> Any:
    """Require a JSON value that every database stores unchanged."""
    match value:
        case str():
            _storable(value)
        case float() if not math.isfinite(value):
            raise PydanticCustomError("not_a_number", "holds a number that is none")
        case dict() | list() if depth >= MAX_DEPTH:
            raise PydanticCustomError("too_deep", "is nested too deeply")
        case dict():
            for key, item in value.items():
                _json(_storable(key) and item, depth + 1)
        case list():
            for item in value:
                _json(item, depth + 1)
    return value


def _plain_words(data: Any) -> Any:
    """Require a translatable text with a template that only names values, because it is formatted later."""
    words = data.get("words") if isinstance(data, dict) else None
    if words is not None:
        _check_words(words)
    return data


def _check_words(words: Any, depth: int = 0) -> None:
    values = words.get("values") if isinstance(words, dict) else None
    if not isinstance(values, dict) or not isinstance(words.get("template"), str) or depth > 3:
        raise ValueError("holds words that are not made of a template and values")
    places = list(string.Formatter().parse(words["template"]))
    if any(spec or conversion or (name is not None and name not in values) for _text, name, spec, conversion in places):
        raise ValueError("holds a template that does more than to name values")
    names = [name for _text, name, _spec, _conversion in places if name is not None]
    if len(names) != len(set(names)):  # a short template could expand to any size
        raise ValueError("holds a template that names a value twice")
    for value in (*values.values(), words.get("shown")):
        if isinstance(value, dict):
            _check_words(value, depth + 1)


def _time(value: object) -> datetime:
    if not isinstance(value, str | datetime):
        raise PydanticCustomError("time", "is no time")
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise PydanticCustomError("time", "is no time") from None
    if time.tzinfo is None or time.year not in YEARS:
        raise PydanticCustomError("time", "is no time with an offset from 1970 on")
    return time.astimezone(UTC)


def among(values: Iterable[object]) -> AfterValidator:
    """Return a validator that accepts one of these values."""
    known = [str(value) for value in values]

    def check(value: str) -> str:
        if value not in known:
            raise PydanticCustomError("choice", "is not one of the known values")
        return value

    return AfterValidator(check)


Text = Annotated[str, Field(max_length=MAX_CHARS), AfterValidator(_storable)]
# The lengths of the columns for names.
Short = Annotated[str, Field(max_length=80), AfterValidator(_storable)]
Name = Annotated[str, Field(max_length=200), AfterValidator(_storable)]
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,32}$")]
Count = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
Seconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Time = Annotated[datetime, BeforeValidator(_time)]
Json = Annotated[Any, AfterValidator(_json)]
JsonObject = Annotated[dict[str, Any], AfterValidator(_json)]
ProviderData = Annotated[dict[str, Any], AfterValidator(_json), AfterValidator(_plain_words)]

_snapshot = TypeAdapter(MessageSnapshot)
_after = TypeAdapter(Id)
_count = TypeAdapter(Count)
_flag = TypeAdapter(bool)
_accepted_from = TypeAdapter(Name)
_FLAGS = {"revision", "include_in_context", "after", "anchor", "edited_message", "together"}
_KNOWN = {
    *(field.name for field in fields(MessageSnapshot)),
    "provider_data",
    "after",
    "together",
    "accepted_from",
    "anchor",
    "edited_message",
}


def _before(value: dict[str, Any]) -> dict[str, Any]:
    """Validate a revision of a message and drop unknown members.

    Most kinds only have flags, and an addition is empty.
    """
    known = {name: each for name, each in _json(value).items() if name in _KNOWN}
    if known:
        if known.keys() <= _FLAGS:
            _flag.validate_python(known.get("include_in_context", True), strict=True)
            _count.validate_python(known.get("revision", 0), strict=True)
        else:
            _snapshot.validate_json(json.dumps(known), strict=True)
            _time(known["timestamp"])
        for name in ("after", "anchor", "edited_message"):
            _after.validate_python(known.get(name, ""))
        _count.validate_python(known.get("together", 0), strict=True)
        _accepted_from.validate_python(known.get("accepted_from", ""))
        _plain_words(known)
        _plain_words(known.get("provider_data"))
    return known


Before = Annotated[dict[str, Any], AfterValidator(_before)]
