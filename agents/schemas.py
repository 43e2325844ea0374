"""The schemas of tools in a form that vendors accept.

Vendors refuse a whole request if one of its tools has a schema that they do not accept. A schema may become less
strict, because Parley or the server checks the arguments anyway. Pure.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection
from itertools import count
from typing import Any
from urllib.parse import unquote

from agents.messages import Json

# A longer schema of a server is replaced by one that accepts any object. In a schema, the parts that replace references
# may have this many characters together.
MAX_SCHEMA_LENGTH = 20_000
MAX_SCHEMA_DEPTH = 30
TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
# Keywords that vendors refuse at the top level.
CHOICES = ("anyOf", "oneOf", "allOf")
NOT_AT_TOP = frozenset({"$schema", "$id", "title", *CHOICES, "enum", "const"})
# The names of arguments that Anthropic accepts: characters, and length.
NAME_CHARACTERS = "a-zA-Z0-9_.-"
MAX_NAME_LENGTH = 64
LIMITS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
# Keywords that are left out everywhere. llama.cpp refuses long lengths and most regular expressions, because it makes
# one grammar of the schemas of all tools. Gemini refuses many items in all tools together, OpenAI regular expressions
# with lookaround, and Kimi several conditions, and references with a description beside them. A discriminator refers to
# definitions.
# https://github.com/ggml-org/llama.cpp/issues/25746, https://github.com/ggml-org/llama.cpp/issues/26930
COUNTS = frozenset(f"{limit}{of}" for limit in ("min", "max") for of in ("Length", "Items", "Properties", "Contains"))
REGULAR_EXPRESSIONS = frozenset({"pattern", "patternProperties", "propertyNames"})
DEPENDENCIES = frozenset({"dependencies", "dependentRequired", "dependentSchemas"})
CONDITIONS = DEPENDENCIES | {"not", "if", "then", "else", "contains"}
OTHER_VALUES = frozenset({"additionalItems", "unevaluatedItems", "unevaluatedProperties", "contentSchema"})
ANCHORS = frozenset({"$anchor", "$dynamicAnchor", "$recursiveAnchor"})
REFERENCES = ANCHORS | {"$ref", "$dynamicRef", "$recursiveRef", "$defs", "definitions", "discriminator"}
LEFT_OUT = COUNTS | REGULAR_EXPRESSIONS | CONDITIONS | OTHER_VALUES | REFERENCES
# Keywords with values of one type.
NUMBERS = frozenset({"minimum", "maximum", *LIMITS})
TEXTS = frozenset({"description", "title", "format", "$comment", "contentEncoding", "contentMediaType"})
FLAGS = frozenset({"uniqueItems", "readOnly", "writeOnly", "deprecated"})
# The types of values in an enumeration.
TYPE_OF = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def schema_for_models(schema: Json) -> Json:
    """Return the input schema of a server's tool in a form that vendors accept, which always describes an object."""
    if len(json.dumps(schema)) > MAX_SCHEMA_LENGTH:
        return {"type": "object", "properties": {}}
    usable = _Reader(schema).part(schema, MAX_SCHEMA_DEPTH)
    kept = {key: value for key, value in usable.items() if key not in NOT_AT_TOP}
    properties = dict(kept.get("properties") or {})
    for choice in (choice for keyword in CHOICES for choice in usable.get(keyword, ())):
        for name, value in (choice.get("properties") or {}).items():
            properties.setdefault(name, value)
    return _with_known_names({**kept, "type": "object", "properties": properties})


def usable_schema(schema: Json) -> Json:
    """Return a schema without what is not valid in JSON Schema 2020-12, and without keywords that vendors refuse.

    References are replaced by the parts to which they refer, up to MAX_SCHEMA_DEPTH and MAX_SCHEMA_LENGTH. Where a part
    contains itself, and beyond these limits, any value is allowed.
    """
    return _Reader(schema).usable(schema, MAX_SCHEMA_DEPTH)


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
    safe = re.sub(f"[^{NAME_CHARACTERS}]", "_", name)[:MAX_NAME_LENGTH] or "_"
    numbered = (f"{safe[: MAX_NAME_LENGTH - 4]}_{number}" for number in count(2))
    return safe if safe not in taken else next(each for each in numbered if each not in taken)


def _described(value: Any, name: str, renamed: Collection[str]) -> Any:
    if name not in renamed or not isinstance(value, dict):
        return value
    description = value.get("description")
    return {**value, "description": f"{name}: {description}" if isinstance(description, str) else name}


class _Reader:
    """Reads one schema, with the parts to which its references refer."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._room = MAX_SCHEMA_LENGTH

    def usable(self, schema: Any, depth: int, within: tuple[str, ...] = ("#",)) -> Json:
        """Return a part of the schema as `usable_schema` does. `within` are the references that led to the part."""
        return _with_types(_with_known_names(self.part(schema, depth, within)))

    def part(self, schema: Any, depth: int, within: tuple[str, ...] = ("#",)) -> Json:
        """Return the same part with all names that it requires, also of properties that only its choices describe."""
        if not isinstance(schema, dict) or not depth:
            return {}
        schema, within = self._followed(schema, within)
        usable = {key: value for key, value in schema.items() if _is_usable(key, value)}
        for keyword, limit in LIMITS.items():  # in draft 4, these are booleans
            if schema.get(keyword) is True and limit in usable:
                usable[keyword] = usable.pop(limit)
        if isinstance(schema.get("items"), list):  # in draft 7, these are the schemas of the first items
            usable["prefixItems"] = schema["items"]
        if usable.get("type") == "array":
            usable.setdefault("items", {})
        if isinstance(named := schema.get("patternProperties"), dict):
            usable["additionalProperties"] = _any_name(named, schema)
        for key, value in usable.items():
            usable[key] = self._usable_value(key, value, depth - 1, within)
        return usable

    def _usable_value(self, key: str, value: Any, depth: int, within: tuple[str, ...]) -> Any:
        match key:
            case "properties":
                return {name: self.usable(one, depth, within) for name, one in value.items()}
            case "anyOf" | "oneOf" | "allOf" | "prefixItems":
                return [self.usable(one, depth, within) for one in value]
            case "items":
                return self.usable(value, depth, within)
            case "additionalProperties":
                return value if isinstance(value, bool) else self.usable(value, depth, within)
        return value

    def _followed(self, schema: Json, within: tuple[str, ...]) -> tuple[Json, tuple[str, ...]]:
        """Return a part of the schema without a reference of its own, and all references that led to it."""
        while isinstance(reference := schema.get("$ref"), str):
            found = {} if reference in within else self._found(reference)
            within = (*within, reference)
            schema = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
        return schema, within

    def _found(self, reference: str) -> Json:
        """Return the part of the schema to which a reference leads, or {} if it leads nowhere or too much is there."""
        if self._room < 0 or not reference.startswith("#/"):
            return {}
        found: Any = self._root
        for part in unquote(reference).split("/")[1:]:
            if isinstance(found, list):
                found = {str(index): each for index, each in enumerate(found)}
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        self._room -= len(json.dumps(found))
        return found if isinstance(found, dict) and self._room >= 0 else {}


def _is_usable(key: str, value: Any) -> bool:
    if key in LEFT_OUT:
        return False
    match key:
        case "type":
            return {value} <= TYPES if isinstance(value, str) else isinstance(value, list) and _is_types(value)
        case "required":
            return isinstance(value, list) and all(isinstance(each, str) for each in value)
        case "properties":
            return isinstance(value, dict)
        case "anyOf" | "oneOf" | "allOf" | "prefixItems" | "enum":
            return isinstance(value, list) and bool(value)
        case "examples":
            return isinstance(value, list)
        case "items":
            return isinstance(value, dict | bool)
        case "multipleOf":
            return _is_number(value) and value > 0
    if key in NUMBERS:
        return _is_number(value)
    if key in TEXTS:
        return isinstance(value, str)
    return isinstance(value, bool) or key not in FLAGS


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_types(names: list[Any]) -> bool:
    return bool(names) and all(isinstance(name, str) and name in TYPES for name in names)


def _any_name(named: Json, schema: Json) -> Any:
    """Return the schema for properties with any name, in place of one for each pattern of names."""
    is_closed = schema.get("additionalProperties") is False
    return next(iter(named.values())) if is_closed and len(named) == 1 else True


def _with_known_names(schema: Json) -> Json:
    """Return a schema that requires only properties that it describes, and no alternatives of required properties.

    Kimi refuses both. Alternatives of which nothing is left are left out, too: two of them would allow no value.
    """
    without_use = {key for key in CHOICES if all(_adds_nothing(each, schema) for each in schema.get(key, ()))}
    rest = {key: value for key, value in schema.items() if key not in without_use}
    if "properties" not in rest or "required" not in rest:
        return rest
    return {**rest, "required": [name for name in rest["required"] if name in rest["properties"]]}


def _adds_nothing(choice: Json, schema: Json) -> bool:
    """Return whether one of a schema's alternatives adds only required properties to it, or nothing."""
    if "properties" not in schema:
        return not choice
    return choice.keys() <= {"required", "type"} and choice.get("type", "object") == "object"


def _with_types(schema: Json) -> Json:
    """Return a schema with the types that its values imply, at the places where Kimi requires them.

    Kimi refuses a property without a type, and a type beside `anyOf`. All other vendors accept both forms.
    """
    if "type" not in schema and (implied := _implied_type(schema)):
        return {**schema, "type": implied}
    if "type" in schema and "anyOf" in schema and not schema.keys() & {"properties", "items", "enum", "const"}:
        rest = {key: value for key, value in schema.items() if key != "type"}
        return {**rest, "anyOf": [_with_types({"type": schema["type"], **choice}) for choice in schema["anyOf"]]}
    return schema


def _implied_type(schema: Json) -> str:
    """Return the type of all values that a schema allows, or "" if it does not follow from the keywords."""
    if schema.keys() & {*CHOICES}:
        return ""
    if "properties" in schema:
        return "object"
    values = [schema["const"]] if "const" in schema else schema.get("enum", ())
    types = {TYPE_OF.get(type(value), "") for value in values}
    return types.pop() if len(types) == 1 else ""
