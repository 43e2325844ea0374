"""The schemas of tools in the form that models get."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from jsonschema import Draft202012Validator

from agents.delegates import delegate
from agents.messages import Json, ToolCall
from agents.schemas import LEFT_OUT, MAX_SCHEMA_LENGTH, schema_for_models, usable_schema, with_names_for_models
from agents.toolbox import TOOLBOX
from agents.toolbox.knowledge import read_knowledge, search_knowledge


def test_schemas_are_objects() -> None:
    assert schema_for_models({"$schema": "x", "title": "t"}) == {"type": "object", "properties": {}}
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    assert schema_for_models(schema) == schema
    assert schema_for_models({"type": "object", "description": "x" * 30_000}) == {"type": "object", "properties": {}}


A, B = {"type": "string"}, {"type": "number"}


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        (
            {"anyOf": [{"required": ["a"]}, {"properties": {"b": B}}], "properties": {"a": A}},
            {"properties": {"a": A, "b": B}},
        ),
        (
            {"anyOf": [{"properties": {"a": A}}, {}], "properties": {"b": B}, "required": ["a", "b", "c"]},
            {"properties": {"a": A, "b": B}, "required": ["a", "b"]},
        ),
        ({"allOf": [{"$ref": "#/$defs/N"}], "enum": [{}]}, {"properties": {}}),
        ({"properties": {"a": {"anyOf": [A, B]}}}, {"properties": {"a": {"anyOf": [A, B]}}}),
        ({"properties": {"a": {"type": "array"}}}, {"properties": {"a": {"type": "array", "items": {}}}}),
        (
            {"properties": {"a": {"type": "array", "items": [A, B]}}},
            {"properties": {"a": {"type": "array", "items": {}, "prefixItems": [A, B]}}},
        ),
        (
            {"properties": {"a": {"minimum": 1, "exclusiveMinimum": True, "exclusiveMaximum": False, "maximum": 9}}},
            {"properties": {"a": {"exclusiveMinimum": 1, "maximum": 9}}},
        ),
        (
            {"properties": {"a": {"type": "strng", "required": True}, "b": True, "c": {"type": ["string", 5]}}},
            {"properties": {"a": {}, "b": {}, "c": {}}},
        ),
        ({"properties": {"a": {"enum": []}, "d": {"minimum": "1"}}}, {"properties": {"a": {}, "d": {}}}),
        (
            {"properties": {"a": {"description": 5, "uniqueItems": 1}}, "required": [1], "examples": A},
            {"properties": {"a": {}}},
        ),
        ({"properties": {"a": {"multipleOf": 0}}}, {"properties": {"a": {}}}),
    ],
)
def test_schemas_that_vendors_refuse_are_replaced(schema: Json, sent: Json) -> None:
    """UI-16: a schema that a vendor does not accept would make it refuse every request with this tool."""
    whole = schema_for_models({"type": "object", **schema})
    assert whole == {"type": "object", **sent}
    Draft202012Validator.check_schema(whole)


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        (
            {**A, "minLength": 1, "maxLength": 2_000, "pattern": r"^(?!\.)\d+$", "description": "x"},
            {**A, "description": "x"},
        ),
        ({"type": "array", "items": A, "minItems": 1, "maxItems": 50}, {"type": "array", "items": A}),
        (
            {"type": "object", "properties": {"pattern": {**A, "pattern": "x"}, "maxLength": B}, "minProperties": 1},
            {"type": "object", "properties": {"pattern": A, "maxLength": B}},
        ),
        (
            {"type": "object", "patternProperties": {"^x-": {**A, "pattern": "x"}}, "additionalProperties": False},
            {"type": "object", "additionalProperties": A},
        ),
        (
            {"type": "object", "patternProperties": {"^x-": A, "^y-": B}, "additionalProperties": False},
            {"type": "object", "additionalProperties": True},
        ),
        (
            {"type": "object", "patternProperties": {"^x-": A}},
            {"type": "object", "additionalProperties": True},
        ),
        (
            {"type": "object", "patternProperties": {"^x-": A}, "additionalProperties": B},
            {"type": "object", "additionalProperties": True},
        ),
        (
            {"type": "object", "propertyNames": {"pattern": "x"}, "additionalProperties": {**A, "maxLength": 5}},
            {"type": "object", "additionalProperties": A},
        ),
        ({**A, "not": {"pattern": "x"}, "if": {"pattern": "y"}, "then": {"maxLength": 2}, "else": False}, A),
        ({**A, "oneOf": [{"pattern": "x"}, {"pattern": "y"}]}, A),
        (
            {"enum": [{"pattern": "x"}], "default": {"maxLength": 1}},
            {"enum": [{"pattern": "x"}], "default": {"maxLength": 1}},
        ),
    ],
)
def test_schemas_have_no_limits_that_vendors_refuse(schema: Json, sent: Json) -> None:
    """UI-16: llama.cpp, OpenAI and Gemini refuse all requests with certain lengths, numbers of items and patterns."""
    assert schema_for_models({"properties": {"a": schema}})["properties"] == {"a": sent}
    assert usable_schema(schema) == sent


def test_own_tools_have_no_limits_that_vendors_refuse() -> None:
    """UI-12, UI-16: Parley checks the arguments itself, and the descriptions state the limits that matter."""
    own = [*TOOLBOX.values(), search_knowledge, read_knowledge, delegate("helper", "Helper")]
    found = {(tool.name, key) for tool in own for key in keywords(tool.parameters) if key in LEFT_OUT}
    assert found == set()
    task = delegate("helper", "Helper").problem(ToolCall("c", "agent__helper", {"task": " "}))
    assert task is not None
    long = TOOLBOX["confirmation"].problem(ToolCall("c", "confirmation", {"question": "x" * 201}))
    assert long is not None
    assert "at most 200 characters" in long.content
    assert "At most 200 characters" in TOOLBOX["confirmation"].parameters["properties"]["question"]["description"]


def keywords(schema: Json) -> Iterator[str]:
    """Yield the keywords of a schema and its parts, without the names of properties."""
    for key, value in schema.items():
        yield key
        parts = value.values() if key == "properties" else value if isinstance(value, list) else [value]
        for part in parts:
            if isinstance(part, dict):
                yield from keywords(part)


TREE: Json = {
    "type": "object",
    "properties": {"name": A, "children": {"type": "array", "items": {"$ref": "#/$defs/T"}}},
}


@pytest.mark.parametrize(
    ("properties", "definitions", "sent"),
    [
        (
            {"a": {"$ref": "#/$defs/A", "description": "x"}},
            {"A": {**A, "pattern": "x"}},
            {"a": {**A, "description": "x"}},
        ),
        ({"a": {"$ref": "#/$defs/a~1b%20c"}}, {"a/b c": {"$ref": "#/$defs/B"}, "B": B}, {"a": B}),
        ({"a": {"anyOf": [A, B]}, "b": {"$ref": "#/properties/a/anyOf/1"}}, {}, {"a": {"anyOf": [A, B]}, "b": B}),
        ({"a": {"anyOf": [{"$ref": "#/$defs/A"}, B]}, "$ref": A}, {"A": A}, {"a": {"anyOf": [A, B]}, "$ref": A}),
        (
            {"tree": {"$ref": "#/$defs/T"}},
            {"T": TREE},
            {"tree": {**TREE, "properties": {"name": A, "children": {"type": "array", "items": {}}}}},
        ),
        ({"a": {"$ref": "#/$defs/A"}}, {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}, {"a": {}}),
        ({"a": {"$ref": "#"}, "b": {"$ref": "#/$defs/None"}, "c": {"$ref": 5}}, {}, {"a": {}, "b": {}, "c": {}}),
        ({"a": {"$ref": "https://example.com/x"}, "b": {"$ref": "#/$defs/A"}}, {"A": True}, {"a": {}, "b": {}}),
    ],
)
def test_references_are_replaced_by_what_they_refer_to(properties: Json, definitions: Json, sent: Json) -> None:
    """UI-16: Gemini and Kimi refuse all requests with a tool that has certain references."""
    whole = schema_for_models({"type": "object", "properties": properties, "$defs": definitions})
    assert whole == {"type": "object", "properties": sent}


@pytest.mark.parametrize(
    "rest",
    [
        {"dependencies": {"a": {"$ref": "#/$defs/A"}}},
        {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"a": {"$ref": "#/$defs/A"}}},
        {"contentSchema": {"$ref": "#/$defs/A"}},
        {"$dynamicRef": "#a", "$dynamicAnchor": "a", "$anchor": "b"},
        {"$recursiveRef": "#", "$recursiveAnchor": True},
    ],
)
def test_no_references_are_left(rest: Json) -> None:
    """UI-16: a reference to a definition that is left out would make a vendor refuse all requests."""
    whole = schema_for_models({"properties": {"a": {**A, **rest}}, "$defs": {"A": A}, **rest})
    assert whole == {"type": "object", "properties": {"a": A}}


def test_references_that_multiply_end() -> None:
    """UI-16: each of these definitions contains the next one twice, so the whole would have 2**16 parts."""
    pair = {str(level): {"properties": {key: {"$ref": f"#/$defs/{level + 1}"} for key in "ab"}} for level in range(16)}
    sent = schema_for_models({"properties": {"a": {"$ref": "#/$defs/0"}}, "$defs": pair})
    assert len(json.dumps(sent)) < 3 * MAX_SCHEMA_LENGTH


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"const": 1}, {"type": "integer", "const": 1}),
        ({"enum": ["a", None]}, {"enum": ["a", None]}),
        ({"properties": {"x": A}}, {"type": "object", "properties": {"x": A}}),
        ({"description": "any value"}, {"description": "any value"}),
        (
            {**A, "anyOf": [{"format": "uri"}, {"enum": ["none"]}]},
            {"anyOf": [{**A, "format": "uri"}, {**A, "enum": ["none"]}]},
        ),
        (
            {"type": "object", "properties": {"x": A}, "required": ["x", "y"], "anyOf": [{"required": ["x"]}]},
            {"type": "object", "properties": {"x": A}, "required": ["x"]},
        ),
        (
            {"properties": {"x": A}, "oneOf": [{"required": ["x"]}, {"type": "object", "required": ["y"]}]},
            {"type": "object", "properties": {"x": A}},
        ),
        (
            {"properties": {"x": A}, "anyOf": [{"type": "object"}, {"type": "null"}]},
            {"properties": {"x": A}, "anyOf": [{"type": "object"}, {"type": "null"}]},
        ),
        ({"type": "array", "items": True}, {"type": "array", "items": {}}),
    ],
)
def test_types_are_where_kimi_requires_them(schema: Json, sent: Json) -> None:
    """UI-16: Kimi refuses all requests with a tool whose schema leaves them out or has them elsewhere."""
    assert usable_schema(schema) == sent


def test_arguments_have_names_that_vendors_accept() -> None:
    """UI-16: names that Anthropic refuses are replaced by names that are valid, unique and described."""
    properties = {"a.b-C_1": A, "StartTime<": {**A, "description": "Calls after."}, "StartTime>": A, "": True, "_": B}
    long = {"x" * 70: A, "x" * 71: A}
    schema = {"type": "object", "properties": properties | long, "required": ["StartTime>", "_", 5]}
    sent, renamed = with_names_for_models(schema)
    assert sent["properties"] == {
        "a.b-C_1": A,
        "StartTime_": {**A, "description": "StartTime<: Calls after."},
        "StartTime__2": {**A, "description": "StartTime>"},
        "__2": True,
        "_": B,
        "x" * 64: {**A, "description": "x" * 70},
        "x" * 60 + "_2": {**A, "description": "x" * 71},
    }
    assert sent["required"] == ["StartTime__2", "_"]
    names = {"StartTime_": "StartTime<", "StartTime__2": "StartTime>", "__2": ""}
    assert renamed == names | {"x" * 64: "x" * 70, "x" * 60 + "_2": "x" * 71}
    safe = schema_for_models({"properties": {"a": A}, "required": ["a"]})
    assert with_names_for_models(safe) == (safe, {})


def test_very_deep_schema_ends() -> None:
    schema: Json = {"type": "object"}
    for _ in range(100):
        schema = {"type": "object", "properties": {"a": schema}}
    assert len(json.dumps(schema_for_models(schema))) < len(json.dumps(schema)) / 2
