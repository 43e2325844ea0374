"""Bracketed numbers that may cite a source: their HTML, and the citations of a growing text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat.rendering.markdown import render
from chat.rendering.markdown.blocks import normalize
from chat.rendering.markdown.stream import MarkdownStream
from chat.rendering.messages.frames import message_html
from chat.snapshots import SourceSnapshot
from tests.rendering.test_frames import message
from tests.rendering.test_markdown_stream import stream_blocks
from tests.support.effort import cases

OTHERS = [
    *("`a[1]`", "[0]", "[1000]", "[01]", "\\[1]", "[1](https://a.example)"),
    *("[a [1] b](https://a.example)", "$x[1]$", "```\na[1]\n```"),
]
PIECES = ["[1]", "[2]", "[1, 2]", ", ", "2", "[", "]", "(x)", " ", "a", "\n", "\n\n", "- ", "`", "*", "1", "|", "> "]
PIECES += ["[1]: https://a.b\n", "[1, 2]: https://a.b\n"]


def test_a_number_in_brackets_may_cite_a_source() -> None:
    html = '<p>High water at noon<span class="cite">[1]</span><span class="cite">[12]</span>.</p>'
    assert render.blocks("High water at noon[1][12].") == (html,)


@pytest.mark.parametrize("separator", [", ", ",", "，", "、"])
def test_brackets_may_cite_several_sources(separator: str) -> None:
    """UI-14: each number can become a chip, and the text does not change, because it may be no citation."""
    numbers = f'<span class="cite">1</span>{separator}<span class="cite">12</span>'
    assert render.blocks(f"Noon [1{separator}12].") == (f"<p>Noon [{numbers}].</p>",)


@pytest.mark.parametrize(
    "text",
    [
        "`a[1, 2]`",
        "[1, 2](https://a.example)",
        "[1, 0]",
        "[1, a]",
        "[1,  2]",
        f"[{', '.join('1' * 21)}]",
        "`a[1]`",
        "[0]",
        "[1000]",
        "[01]",
        "\\[1]",
        "[1](https://a.example)",
        "[a [1] b](https://a.example)",
        "$x[1]$",
        "```\na[1]\n```",
    ],
)
def test_other_brackets_cite_nothing(text: str) -> None:
    """MSG-12: brackets in code, links and formulas are not citations."""
    assert "cite" not in render.render(text)


def test_a_definition_makes_a_link_of_it() -> None:
    """LIVE-01: brackets with a link definition become a link, even if the definition follows a finished block."""
    stream = MarkdownStream()
    stream.feed("See [1].\n\nMore.\n\nEnd.\n\n")
    assert 'class="cite"' in stream.blocks[0]
    stream.feed("[1]: https://a.example\n\nx")
    stream.finish()
    assert 'href="https://a.example"' in stream.blocks[0]


@settings(deadline=None, max_examples=cases(200))
@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_a_growing_text_with_citations_ends_as_the_page(cut: list[str]) -> None:
    """LIVE-01: whatever follows a number, a live page shows the same as a reload."""
    assert stream_blocks(cut, drawing=True) == render.draw_all(normalize("".join(cut)))


def test_an_answer_lists_its_sources() -> None:
    """MSG-12: the titles of sources are escaped, and only web addresses are links."""
    sources = (SourceSnapshot(3, "<b>Tides</b>", "https://www.tides.example/a?b=c&d"),)
    html = message_html(message(text="Noon [3].", role="assistant"))
    assert "sources" not in html
    html = message_html(replace(message(text="Noon [3].", role="assistant"), sources=sources))
    assert '<li data-number="3">' in html
    assert 'href="https://www.tides.example/a?b=c&amp;d"' in html
    assert "&lt;b&gt;Tides" in html
    assert ">tides.example<" in html
