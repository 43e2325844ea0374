"""The schemas of tools in the form that models get."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from agents.messages import Json
from agents.schemas import schema_for_models, with_names_for_models


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
        (
            {
                "properties": {
                    "a": {"enum": []},
                    "b": {"pattern": "("},
                    "c": {"pattern": r"^\d+$"},
                    "d": {"minimum": "1"},
                }
            },
            {"properties": {"a": {}, "b": {}, "c": {"pattern": r"^\d+$"}, "d": {}}},
        ),
        (
            {
                "properties": {"a": {"minLength": -1, "description": 5, "uniqueItems": 1}},
                "required": [1],
                "examples": A,
            },
            {"properties": {"a": {}}},
        ),
        (
            {"properties": {"a": {"multipleOf": 0}, "b": {"patternProperties": {"x": {"type": "strng"}}}}},
            {"properties": {"a": {}, "b": {"patternProperties": {"x": {}}}}},
        ),
        (
            {
                "$ref": "#/definitions/None",
                "properties": {"a": {"$ref": "#/$defs/None"}, "b": {"$ref": "https://example.com/x"}, "$ref": A},
                "$defs": {"a/b": {"items": {"$ref": "#/$defs/a~1b"}}},
            },
            {"properties": {"a": {}, "b": {}, "$ref": A}, "$defs": {"a/b": {"items": {"$ref": "#/$defs/a~1b"}}}},
        ),
    ],
)
def test_schemas_that_vendors_refuse_are_replaced(schema: Json, sent: Json) -> None:
    """UI-16: a schema that a vendor does not accept would make it refuse every request with this tool."""
    whole = schema_for_models({"type": "object", **schema})
    assert whole == {"type": "object", **sent}
    Draft202012Validator.check_schema(whole)


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
