"""Forms of MCP servers: schemas as fields, and the check of an answer (UI-18)."""

from __future__ import annotations

from typing import Any

import pytest

from agents.elicitation import Unusable, form_of, link_of, read_elicitation
from agents.questions import InvalidAnswer

ENUM = {"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"]}


def answered(schema: dict[str, Any], value: object, *, required: bool = False) -> Any:
    """Answer a form with one field and return the result for the server."""
    question = form_of("it", "What?", {"properties": {"x": schema}, "required": ["x"] if required else []})
    answer = question.check({"action": "accept", "content": {"x": value}})
    return question.for_server(answer)["content"].get("x")


@pytest.mark.parametrize(
    ("schema", "value", "given"),
    [
        ({"type": "string"}, "a", "a"),
        ({"type": "string"}, "", None),
        ({"type": "string", "format": "email"}, "a@b.example", "a@b.example"),
        ({"type": "string", "format": "uri"}, "https://a.example/x", "https://a.example/x"),
        ({"type": "string", "format": "date-time"}, "2026-01-31T09:30:00Z", "2026-01-31T09:30:00Z"),
        ({"type": "string", "format": "unknown"}, "a", "a"),
        ({"type": "integer"}, "4", 4),
        ({"type": "integer"}, 12345678901234567, 12345678901234567),
        ({"type": "number", "minimum": 0.5}, 0.5, 0.5),
        ({"type": "boolean"}, False, False),
        (ENUM, "Medium", "m"),
        ({"type": "array", "items": {"anyOf": [{"const": "r", "title": "Red"}]}}, ["Red"], ["r"]),
    ],
)
def test_value_reaches_the_server_in_its_own_form(schema: dict[str, Any], value: object, given: object) -> None:
    assert answered(schema, value) == given


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "minLength": 3}, "ab"),
        ({"type": "string", "maxLength": 3}, "abcd"),
        ({"type": "string", "format": "email"}, "a b@c"),
        ({"type": "string", "format": "uri"}, "javascript:alert(1)"),
        ({"type": "string", "format": "date"}, "31.1.2026"),
        ({"type": "string", "format": "date-time"}, "2026-01-31T09:30:00"),
        ({"type": "integer"}, 1.5),
        ({"type": "integer", "maximum": 3}, 4),
        ({"type": "number", "minimum": 0}, -1),
        ({"type": "boolean"}, "yes"),
        (ENUM, "m"),
        ({"type": "array", "items": ENUM, "maxItems": 1}, ["Small", "Medium"]),
        ({"type": "string"}, {"a": 1}),
    ],
)
def test_value_that_the_schema_does_not_allow_is_refused(schema: dict[str, Any], value: object) -> None:
    with pytest.raises(InvalidAnswer):
        answered(schema, value)


def test_required_field_and_unknown_field() -> None:
    with pytest.raises(InvalidAnswer, match="required"):
        answered({"type": "string"}, "", required=True)
    question = form_of("it", "What?", {"properties": {"x": {"type": "string"}}})
    for value in ({"action": "accept", "content": {"y": "a"}}, {"action": "accept"}, {"action": "x"}, "accept", None):
        with pytest.raises(InvalidAnswer):
            question.check(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"type": "object"}}},
        {"properties": {"x": {"type": "array", "items": {"type": "number"}}}},
        {"properties": {"x": "string"}},
        {"properties": []},
        {"properties": {"has space": {"type": "string"}}},
        {"properties": {f"x{n}": {"type": "string"} for n in range(51)}},
        {"properties": {"x": {"type": "string", "enum": ["a", "a"]}}},
        {"properties": {"x": {"type": "integer", "minimum": "low"}}},
        {"properties": {f"x{n}": {"type": "string", "enum": [f"{m:0200}" for m in range(50)]} for n in range(9)}},
    ],
)
def test_form_that_cannot_be_shown_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(Unusable):
        form_of("it", "What?", schema)


def test_long_texts_are_cut_and_nul_is_replaced() -> None:
    schema = {"properties": {"x": {"type": "string", "title": "t" * 900, "description": "d" * 900}}}
    question = form_of("it", "\x00" + "m" * 9000, schema)
    assert (len(question.message), question.message[0]) == (2000, "\ufffd")
    assert (len(question.fields[0].label), len(question.fields[0].help)) == (200, 500)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "ftp://a.example",
        "https://user:secret@a.example/",
        "https://",
        "https://a b.example/",
        "",
    ],
)
def test_address_that_people_may_not_be_sent_to_is_refused(url: str) -> None:
    with pytest.raises(Unusable):
        link_of("it", "Open this", url)


@pytest.mark.parametrize("url", ["http://[", "javascript:alert(1)"])
def test_row_with_another_address_is_no_question(url: str) -> None:
    """UI-18: an imported row with another type of address is not shown as a question, because cards show the address's
    host."""
    assert read_elicitation({"server": "it", "message": "Open this", "url": url}) is None


def test_host_is_shown_as_it_goes_over_the_network() -> None:
    assert link_of("it", "Open", "https://раypal.com/a").host == "xn--ypal-43d9g.com"


def test_payload_of_a_row_is_read_again() -> None:
    question = form_of("it", "What?", {"properties": {"x": ENUM}})
    assert read_elicitation(question.model_dump(exclude_defaults=True)) == question
    assert read_elicitation({"server": 1}) is None
