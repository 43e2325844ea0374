"""The arguments of a call that the model is writing: readable at every character, however they are split, and safe."""

from __future__ import annotations

import json
import re
from html import unescape
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chat.rendering.markdown.render import blocks
from chat.rendering.messages.written_arguments import PIECE, ArgumentsStream, LiveArguments, arguments_html

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=20)


def drawn(*pieces: str) -> str:
    stream = ArgumentsStream()
    for piece in pieces:
        stream.feed(piece)
    stream.finish()
    return "".join(stream.blocks)


def values(html: str) -> dict[str, str]:
    """Return the text under each heading."""
    found = {}
    for part in html.split('<p class="tool-part">')[1:]:
        name, _, rest = part.partition("</p>")
        found[unescape(name)] = unescape("".join(re.findall(r'<pre class="written">\n(.*?)</pre>', rest, re.DOTALL)))
    return found


def test_a_file_is_readable_before_it_is_complete() -> None:
    """UI-10: line breaks are shown as line breaks, and the beginning is shown immediately."""
    html = drawn('{"path": "a.py", "content": "def f():\\n\\treturn \\"<b>\\" # \\u00e9\\ud83d\\ude00')
    assert values(html) == {"path": "a.py", "content": 'def f():\n\treturn "<b>" # é😀'}
    assert "&lt;b&gt;" in html


@example(arguments={"0": None}, cuts=[6], ascii=False)  # a value without others
@given(st.dictionaries(KEYS, JSON, max_size=4), st.lists(st.integers(0, 400), max_size=20), st.booleans())
def test_arguments_are_the_same_however_they_are_cut(
    arguments: dict[str, object], cuts: list[int], ascii: bool
) -> None:
    """UI-10: text values are shown as they are, and other values as JSON, however the arguments are split."""
    text = json.dumps(arguments, ensure_ascii=ascii)
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    html = drawn(*(text[start:end] for start, end in pairwise(places)))
    assert html == drawn(text)
    for name, value in values(html).items():
        expected = arguments[name]
        clean = (
            expected.replace("\0", "\ufffd") if isinstance(expected, str) else json.dumps(expected, ensure_ascii=ascii)
        )
        assert value.strip() == clean.replace("\r\n", "\r\n").strip()


@pytest.mark.parametrize(
    "text", ["[1, 2]", "no JSON", '{"' + "k" * 500, '{"a": 1}}}]', '{"a":"\\u12', "\\", '{"a": "\\ud800x"}']
)
def test_what_is_no_object_is_shown_as_it_is(text: str) -> None:
    assert drawn(text) == drawn(*text)


def test_no_frame_redraws_what_is_long() -> None:
    """UI-10: the cost of a frame does not depend on the length of the message."""
    live = LiveArguments("m")
    live.append('{"content": "')
    live.frame()
    for _ in range(200):
        live.append("a line of the file\\n" * 20)
        frame = live.frame()
        assert frame is not None
        assert len(json.dumps(frame)) < 2 * PIECE + 1_000
    live.append("x" * 10_000)
    live.frame()
    frame = live.frame(end=True)
    assert frame is not None
    assert live.ended
    assert len(live.snapshot()["blocks"]) > 30


def test_arguments_are_not_cached_as_markdown() -> None:
    """UI-01: an answer with the same text as the arguments of a call is drawn as Markdown."""
    text = '{"only_here": "**x**"}'
    live = LiveArguments("m")
    live.append(text)
    live.frame(end=True)
    assert live.ended
    assert blocks(text) == ('<p>{"only_here": "<strong>x</strong>"}</p>',)


def test_the_whole_is_in_blocks() -> None:
    assert arguments_html('{"a": "x"}').startswith('<div class="block" dir="auto"><p class="tool-part">a</p></div>')
