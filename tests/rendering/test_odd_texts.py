"""Texts that are slow for regular expressions that search again from each position."""

from __future__ import annotations

import html
import re

import pytest

from chat.rendering.text.user_text import user_text_html


@pytest.mark.parametrize(
    "text",
    [
        "```x\n" * 200_000,
        "~~~\n~~~~\n" * 100_000,
        "http://a" + ")" * 1_000_000,
        "http://a" + ")." * 500_000,
        "`a" * 200_000,
    ],
    ids=["fences", "tildes", "brackets", "stops", "ticks"],
)
def test_people_s_words_take_no_longer_for_being_odd(text: str) -> None:
    """MSG-12: a million characters of any kind take linear time; a failing test would not end."""
    assert html.unescape(re.sub(r"<[^>]*>", "", user_text_html(text))) == text


def test_fences_close_each_other_in_their_order() -> None:
    """MSG-12: a fence of the same length closes a fence; an unclosed fence is text."""
    text = "```py\na\n```\nb\n~~~~\n```\n~~~~\n```\nc"
    assert re.findall('<code class="fence">([^<]*)</code>', user_text_html(text)) == [
        "```py\na\n```\n",
        "~~~~\n```\n~~~~\n",
    ]
