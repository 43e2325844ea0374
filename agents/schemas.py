"""The schemas of tools in a form that vendors accept.

Vendors refuse a whole request if one of its tools has a schema that they do not accept. A schema may become less
strict, because the server checks the arguments anyway. Pure.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable, Collection
from itertools import count
from typing import Any
from urllib.parse import unquote

from agents.messages import Json

# A longer schema is replaced by one that accepts any object.
LONGEST_SCHEMA = 20_000
DEEPEST_SCHEMA = 30
TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
# Keywords that vendors refuse at the top level.
CHOICES = ("anyOf", "oneOf", "allOf")
NOT_AT_TOP = frozenset({"$schema", "$id", "title", *CHOICES, "not", "enum", "const", "if", "then", "else"})
# The names of arguments that Anthropic accepts: characters, and length.
NAME_CHARACTERS = "a-zA-Z0-9_.-"
LONGEST_NAME = 64
LIMITS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
# Keywords with values of one type.
NUMBERS = frozenset({"minimum", "maximum", *LIMITS})
COUNTS = frozenset(f"{limit}{of}" for limit in ("min", "max") for of in ("Length", "Items", "Properties", "Contains"))
TEXTS = frozenset({"description", "title", "format", "$comment", "contentEncoding", "contentMediaType"})
FLAGS = frozenset({"uniqueItems", "readOnly", "writeOnly", "deprecated"})


def schema_for_models(schema: Json) -> Json:
    """Return a tool's input schema in a form that vendors accept, which always describes an object."""
    if len(json.dumps(schema)) > LONGEST_SCHEMA:
        return {"type": "object", "properties": {}}
    usable = _usable(schema, DEEPEST_SCHEMA)
    kept = {key: value for key, value in usable.items() if key not in NOT_AT_TOP}
    properties = dict(kept.get("properties") or {})
    for choice in (choice for keyword in CHOICES for choice in usable.get(keyword, ())):
        for name, value in (choice.get("properties") or {}).items():
            properties.setdefault(name, value)
    whole: Json = {**kept, "type": "object", "properties": properties}
    return dict(_without_broken_references(whole, whole))


def with_names_for_models(schema: Json) -> tuple[Json, dict[str, str]]:
    """Return a schema from `schema_for_models` with names of arguments that vendors accept.

    Also return the server's names of the arguments that it renames. Their descriptions begin with these names.
    """
    properties, renamed = schema["properties"], dict[str, str]()
    taken = {name for name in properties if _safe_name(name) == name}
    for name in properties:
        if name not in taken:
            taken.add(safe := _safe_name(name, taken))
            renamed[safe] = name
    if not renamed:
        return schema, renamed
    safe_names = {name: safe for safe, name in renamed.items()}
    named = {safe_names.get(name, name): _described(value, name, safe_names) for name, value in properties.items()}
    required = [safe_names.get(name, name) for name in schema.get("required", ()) if isinstance(name, str)]
    return {**schema, "properties": named, **({"required": required} if "required" in schema else {})}, renamed


def _safe_name(name: str, taken: Collection[str] = ()) -> str:
    """Return a name of an argument with the characters and the length that vendors accept, which is not taken."""
    safe = re.sub(f"[^{NAME_CHARACTERS}]", "_", name)[:LONGEST_NAME] or "_"
    numbered = (f"{safe[: LONGEST_NAME - 4]}_{number}" for number in count(2))
    return safe if safe not in taken else next(each for each in numbered if each not in taken)


def _described(value: Any, name: str, renamed: Collection[str]) -> Any:
    if name not in renamed or not isinstance(value, dict):
        return value
    description = value.get("description")
    return {**value, "description": f"{name}: {description}" if isinstance(description, str) else name}


def _usable(schema: Any, depth: int) -> Json:
    """Return a schema without what is not valid in JSON Schema 2020-12, at any depth."""
    if not isinstance(schema, dict) or not depth:
        return {}
    usable = {key: value for key, value in schema.items() if _is_usable(key, value)}
    for keyword, within in LIMITS.items():  # in draft 4, these are booleans
        if schema.get(keyword) is True and within in usable:
            usable[keyword] = usable.pop(within)
    if isinstance(schema.get("items"), list):  # in draft 7, these are the schemas of the first items
        usable["prefixItems"] = schema["items"]
    if usable.get("type") == "array":
        usable.setdefault("items", {})
    for key in usable.keys() & _WITHIN.keys():
        usable[key] = _WITHIN[key](usable[key], depth - 1)
    return usable


def _is_usable(key: str, value: Any) -> bool:
    match key:
        case "type":
            return {value} <= TYPES if isinstance(value, str) else isinstance(value, list) and _is_types(value)
        case "required":
            return isinstance(value, list) and all(isinstance(each, str) for each in value)
        case "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas":
            return isinstance(value, dict)
        case "anyOf" | "oneOf" | "allOf" | "prefixItems" | "enum":
            return isinstance(value, list) and bool(value)
        case "examples":
            return isinstance(value, list)
        case "items":
            return isinstance(value, dict | bool)
        case "pattern":
            return isinstance(value, str) and _is_pattern(value)
        case "multipleOf":
            return _is_number(value) and value > 0
    if key in NUMBERS:
        return _is_number(value)
    if key in COUNTS:
        return _is_number(value) and value >= 0 and value == int(value)
    if key in TEXTS:
        return isinstance(value, str)
    return isinstance(value, bool) or key not in FLAGS


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_pattern(text: str) -> bool:
    """Return whether Python can compile a regular expression. A vendor may refuse a request with another one."""
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _without_broken_references(value: Any, root: Json) -> Any:
    """Return a part of a schema without references that lead to no part of the schema."""
    if isinstance(value, list):
        return [_without_broken_references(each, root) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _without_broken_references(each, root)
        for key, each in value.items()
        if key != "$ref" or isinstance(each, dict) or _leads_somewhere(each, root)
    }


def _leads_somewhere(reference: Any, root: Json) -> bool:
    if not isinstance(reference, str) or not reference.startswith("#"):
        return False
    found: Any = root
    for part in unquote(reference).split("/")[1:]:
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return isinstance(found, dict | bool) and (reference == "#" or reference.startswith("#/"))


def _is_types(names: list[Any]) -> bool:
    return bool(names) and all(isinstance(name, str) and name in TYPES for name in names)


def _one(value: Any, depth: int) -> Any:
    return value if isinstance(value, bool) else _usable(value, depth)


def _each(values: Any, depth: int) -> list[Json]:
    return [_usable(value, depth) for value in values]


def _named(values: Any, depth: int) -> Json:
    return {name: _usable(value, depth) for name, value in values.items()}


_WITHIN: dict[str, Callable[[Any, int], Any]] = {
    **dict.fromkeys(("properties", "$defs", "definitions", "patternProperties", "dependentSchemas"), _named),
    **dict.fromkeys((*CHOICES, "prefixItems"), _each),
    **dict.fromkeys(("items", "additionalProperties"), _one),
}
