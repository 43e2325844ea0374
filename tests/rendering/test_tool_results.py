"""Tool results in tool cards."""

from __future__ import annotations

import json
import re
from html import unescape
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.providers.arguments import read_arguments
from chat.models import ChatMessage
from chat.rendering.messages.as_markdown import as_markdown
from chat.rendering.messages.file_changes import change_of
from chat.rendering.messages.frames import message_html
from chat.rendering.text.json_text import MAX_DEPTH, colored, indent_json
from chat.snapshots import MessageSnapshot, ToolSnapshot

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


NONE: dict[str, object] = {}


def shown(result: str, tool: str = "web_fetch", arguments: object = NONE) -> list[str]:
    """Return the texts of the card's <pre> elements as a browser reads them, without a newline directly after the
    tag."""
    row = ChatMessage(id="m_1", session_id="s_1", type="tool_group", tool_name=tool, arguments=arguments, result=result)
    html = message_html(MessageSnapshot.from_row(row))
    inside = [part.split(">", 1)[1].split("</pre>")[0] for part in html.split("<pre")[1:]]
    return [unescape(re.sub("<[^>]*>", "", text.removeprefix("\n"))) for text in inside]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('{"a":1E5,"b":1.10}', '{\n  "a": 1E5,\n  "b": 1.10\n}'),
        ('{"a":1,"a":2}', '{\n  "a": 1,\n  "a": 2\n}'),
        ('[[],{},"\\u4e2d, {\\"}"]', '[\n  [],\n  {},\n  "\\u4e2d, {\\"}"\n]'),
        ("[" + "9" * 5000 + "]", "[\n  " + "9" * 5000 + "\n]"),
    ],
)
def test_json_is_laid_out_without_changing_a_token(text: str, lines: str) -> None:
    """UI-02: numbers, keys and strings stay as the tool wrote them."""
    assert shown(text) == [lines]


@given(VALUES)
def test_layout_is_that_of_json_itself(value: object) -> None:
    """JSON on one line becomes what Python writes with indentation."""
    text = json.dumps([value])
    assert indent_json(text) == json.dumps([value], indent=2)


@pytest.mark.parametrize(
    "text", ["{not json}", "[1,]", '{"a": 1} and more', "plain", "", "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)]
)
def test_what_cannot_be_laid_out_is_shown_as_it_is(text: str) -> None:
    assert indent_json(text) == text


@pytest.mark.parametrize("text", ['{"url": "https://', "[1, 2]", "plain <b>text</b>"])
def test_arguments_that_are_no_object_are_shown_as_the_model_wrote_them(text: str) -> None:
    """UI-02: invalid arguments are shown and copied without the key under which the row stores them."""
    arguments = read_arguments(text)
    assert shown("Not a JSON object.", arguments=arguments)[0] == indent_json(text)
    row = ChatMessage(id="m_1", session_id="s_1", type="tool_group", tool_name="web_fetch", arguments=arguments)
    assert as_markdown(MessageSnapshot.from_row(row)) == f"**web_fetch**\n\n```\n{text}\n```"


@pytest.mark.parametrize("text", ["\nsecond line", "\n\nthird line", "first line\n"])
def test_result_keeps_its_first_newline(text: str) -> None:
    """MSG-12: HTML drops one newline right after <pre>; the result's own is kept."""
    assert shown(text) == [text]


def test_rest_of_a_long_output_keeps_its_first_newline() -> None:
    """UI-10: the cut may fall before an empty line."""
    output = "\n".join([*map(str, range(200)), "", *map(str, range(400))])
    assert shown(output, "bash")[-1].startswith("\n0\n1\n")


@pytest.mark.parametrize("text", ['["' + '\\"' * 9_000, '{"a\\\n' * 3_000, '["' + "\\" * 18_001])
def test_strings_that_nothing_closes_end_with_their_lines(text: str) -> None:
    """MSG-12: an unclosed string ends with its line, because searching from each of them again took too long."""
    assert unescape(re.sub("<[^>]*>", "", colored(text))) == text
    assert colored('["a\n1]') == '[<span class="s">"a</span>\n<span class="m">1</span>]'


def test_large_changes_of_a_file_are_shown_without_comparing_each_line() -> None:
    """UI-10: a large change is shown without a comparison of lines, which took 9 s for 200 KB each time the session was
    opened."""
    old, new = ("\n".join(chr(0x4E00 + place * step % 120) for place in range(50_000)) for step in (7, 11))
    began = thread_time()
    tool = ToolSnapshot("c1", "edit_file", {"path": "a.txt", "old": old, "new": new}, "at line 1.", False, None)
    change = change_of(tool)
    assert thread_time() - began < 1
    assert change is not None
    assert (change.added, change.removed, change.left_out) == (50_000, 50_000, True)
    assert (change.lines[0].kind, change.lines[1].kind) == ("place", "gone")
    few = change_of(ToolSnapshot("c1", "edit_file", {"path": "a", "old": "a\nb", "new": "a\nc"}, "", False, None))
    assert few is not None
    assert [line.kind for line in few.lines] == ["place", "same", "gone", "new"]
