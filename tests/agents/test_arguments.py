"""The model's original text of arguments, compared with the present arguments."""

from __future__ import annotations

import pytest

from agents.messages import Json, ToolCall
from agents.providers.arguments import arguments_text, is_unedited, read_arguments

DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000


@pytest.mark.parametrize(
    ("raw", "arguments", "same"),
    [
        ('{ "a":1 }', {"a": 1}, True),
        ('{"a": 1e2, "b": 1.0}', {"a": 100, "b": 1}, True),
        ('{"a": 1}', {"a": True}, False),
        ('{"a": [{"b": 0}]}', {"a": [{"b": False}]}, False),
        ('{"a": [1]}', {"a": [1, 2]}, False),
        ('{"a": 1}', {"a": 1, "b": 2}, False),
        ('{"a": null}', {}, False),
        ("{oops", {"_raw": "{oops"}, True),
        ("[1]", {"_raw": "[1]"}, True),
        ("{oops", {}, False),
        ("", {}, False),
    ],
    ids=str,
)
def test_text_that_says_something_else_gives_way(raw: str, arguments: Json, same: bool) -> None:
    """MSG-08, MSG-11: the original text is sent only if it means the same: true is not 1, but 100 equals 1e2."""
    assert is_unedited(raw, arguments) is same


def test_edited_flag_is_sent() -> None:
    """MSG-08, MSG-11: an edited value replaces the model's text, even if Python considers both equal."""
    assert arguments_text(ToolCall("1", "add", {"a": True}, '{"a":1}')) == '{"a": true}'


def test_text_without_a_bottom_is_no_json() -> None:
    """MSG-10: text nested too deeply is kept for the tool to refuse, and sent as an object."""
    assert read_arguments(DEEP) == {"_raw": DEEP}
    assert is_unedited(DEEP, {"_raw": DEEP})
    assert arguments_text(ToolCall("1", "add", {"a": 1}, DEEP)) == '{"a": 1}'
