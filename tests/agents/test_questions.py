"""UI-12: the questions that an agent may ask, and the answers that fit them."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.messages import ToolCall
from agents.questions import WIDGETS, InvalidAnswer, Question, read_question
from agents.toolbox.widgets import WIDGET_TOOLS

CHOICES = [{"id": "a", "label": "A"}, {"id": "b", "label": "B", "description": "The second"}]
FIELDS: list[dict[str, Any]] = [
    {"id": "name", "label": "Name", "required": True},
    {"id": "about", "label": "About", "type": "long_text"},
    {"id": "count", "label": "Count", "type": "number"},
    {"id": "day", "label": "Day", "type": "date"},
    {"id": "sure", "label": "Sure", "type": "yes_no"},
    {"id": "size", "label": "Size", "type": "choice", "options": ["S", "M"]},
    {"id": "colors", "label": "Colors", "type": "choices", "options": ["red", "blue"]},
]
PAYLOADS: dict[str, dict[str, Any]] = {
    "form": {"title": "Order", "fields": FIELDS},
    "selection": {"question": "Which?", "choices": CHOICES},
    "confirmation": {"question": "Sure?"},
    "plan_review": {"title": "Plan", "plan": "1. Begin"},
    "feedback": {"question": "What do you think?", "items": CHOICES},
    "action_selection": {"question": "What next?", "actions": CHOICES},
    "approval": {},
}


def question(kind: str, **more: Any) -> Question:
    read = read_question(kind, PAYLOADS[kind] | more)
    assert read is not None
    return read


@pytest.mark.parametrize(
    ("kind", "more", "value", "result"),
    [
        ("selection", {}, ["b"], ["b"]),
        ("selection", {"multiple": True}, ["b", "a"], ["a", "b"]),
        ("selection", {"optional": True}, [], []),
        ("confirmation", {}, {"confirmed": False}, {"confirmed": False}),
        ("plan_review", {}, {"decision": "approve", "plan": "ignored"}, {"decision": "approve"}),
        ("plan_review", {}, {"decision": "edit", "plan": "2."}, {"decision": "edit", "plan": "2."}),
        ("plan_review", {}, {"decision": "reject", "comment": "No"}, {"decision": "reject", "comment": "No"}),
        ("feedback", {}, {"a": " Good. ", "b": ""}, {"a": "Good."}),
        ("action_selection", {}, "b", "b"),
        ("approval", {}, {"approved": True}, {"approved": True, "scope": "once", "comment": ""}),
        ("form", {}, {"name": "Ana"}, {"name": "Ana"}),
        (
            "form",
            {},
            {"name": "Ana", "count": "2.50", "day": "2026-02-28", "sure": False, "size": "M", "colors": ["blue"]},
            {"name": "Ana", "count": 2.5, "day": "2026-02-28", "sure": False, "size": "M", "colors": ["blue"]},
        ),
        ("form", {}, {"name": "Ana", "count": 12, "about": "", "colors": []}, {"name": "Ana", "count": 12}),
        ("form", {}, {"name": "Ana", "count": 12345678901234567}, {"name": "Ana", "count": 12345678901234567}),
        ("form", {}, {"name": "Ana", "count": " -12345678901234567 "}, {"name": "Ana", "count": -12345678901234567}),
    ],
)
def test_answer_that_fits_is_what_the_model_gets(kind: str, more: dict[str, Any], value: Any, result: Any) -> None:
    assert question(kind, **more).check(value) == result


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        ("selection", [], "at least one"),
        ("selection", ["a", "b"], "only one"),
        ("selection", ["c"], "from the list"),
        ("selection", "a", "from the list"),
        ("confirmation", {"confirmed": "yes"}, "yes or no"),
        ("confirmation", {"confirmed": True, "more": 1}, "yes or no"),
        ("plan_review", {"decision": "edit", "plan": " "}, "Write the plan"),
        ("plan_review", {"decision": "maybe"}, "Approve the plan"),
        ("feedback", {}, "at least one"),
        ("feedback", {"c": "x"}, "listed items"),
        ("action_selection", ["a"], "from the list"),
        ("approval", {"approved": False, "arguments": {}}, "Approve the call"),
        ("approval", {"approved": "yes"}, "Approve the call"),
        ("form", {}, "“Name” is required"),
        ("form", {"name": "Ana", "more": 1}, "Fill in"),
        ("form", {"name": "Ana", "count": "many"}, "“Count” must be a number"),
        ("form", {"name": "Ana", "count": "1e999"}, "“Count” must be a number"),
        ("form", {"name": "Ana", "count": True}, "“Count” must be a number"),
        ("form", {"name": "Ana", "day": "2026-02-30"}, "“Day” must be a date"),
        ("form", {"name": "Ana", "sure": "yes"}, "yes or no"),
        ("form", {"name": "Ana", "size": "L"}, "Choose an option for “Size”"),
        ("form", {"name": "Ana", "colors": ["green"]}, "Choose an option for “Colors”"),
        ("form", {"name": "x" * 20_001}, "too long"),
        ("form", {"name": 12}, "“Name” must be text"),
        ("form", {"name": "Ana", "size": ["S"]}, "Choose an option for “Size”"),
    ],
)
def test_answer_that_does_not_fit_is_refused_with_the_reason(kind: str, value: Any, why: str) -> None:
    with pytest.raises(InvalidAnswer, match=why):
        question(kind).check(value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["a", "b", "name"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "name", "confirmed"]), inner),
    max_leaves=6,
)


@given(kind=st.sampled_from(sorted(PAYLOADS)), value=json_values)
def test_any_value_is_an_answer_or_is_refused(kind: str, value: Any) -> None:
    """Any value of a client gives a result that can be stored as JSON, or an error message for the user."""
    with suppress(InvalidAnswer):
        json.dumps(question(kind).check(value), allow_nan=False)


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("form", {"title": "Order", "fields": []}),
        ("form", {"title": "Order", "fields": [FIELDS[0], FIELDS[0]]}),
        ("form", {"title": "Order", "fields": [{"id": "a", "label": "A", "type": "choice"}]}),
        ("form", {"title": "Order", "fields": [{"id": "a", "label": "A", "options": ["x"]}]}),
        ("selection", {"question": "Which?", "choices": [CHOICES[0], CHOICES[0]]}),
        ("selection", {"question": "", "choices": CHOICES}),
        ("confirmation", {"question": "Sure?", "color": "red"}),
        ("poll", {}),
    ],
)
def test_payload_that_is_no_question_is_not_read(kind: str, payload: Any) -> None:
    assert read_question(kind, payload) is None


def test_each_widget_is_a_tool_whose_schema_needs_no_references() -> None:
    """Each widget's tool has a description, checks its arguments, and has a schema without references, which all
    servers understand."""
    assert [tool.name for tool in WIDGET_TOOLS] == [widget.kind for widget in WIDGETS]
    for tool in WIDGET_TOOLS:
        assert "$ref" not in json.dumps(tool.parameters)
        assert "$defs" not in tool.parameters
        assert tool.description
        assert tool.problem(ToolCall("c1", tool.name, PAYLOADS[tool.name])) is None
        problem = tool.problem(ToolCall("c1", tool.name, {}))
        assert problem is not None
        assert problem.is_error
