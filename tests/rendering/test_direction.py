"""Long blocks have an explicit direction, which is the one that a browser would determine."""

from __future__ import annotations

import pytest

from chat.rendering.markdown.render import MAX_AUTO_LENGTH, direction_of, render

FILL = " 1." * MAX_AUTO_LENGTH


@pytest.mark.parametrize(
    ("html", "direction"),
    [
        ("<p>Words", "ltr"),
        ("<p>שלום Words", "rtl"),
        ("<p>1. (مرحبا", "rtl"),
        ("<p>&amp; <em>שלום</em> Words", "rtl"),
        ('<p><code dir="ltr">ls -l</code> שלום', "rtl"),
        ('<p title="Words"><code>Words</code> שלום', "ltr"),
        ('<p><code dir="ltr">Words</code>, ', "ltr"),
        ("<p>12", "ltr"),
    ],
)
def test_first_letter_gives_the_direction(html: str, direction: str) -> None:
    """MSG-12: right-to-left text keeps its direction, and code keeps its own."""
    assert direction_of(html) == "auto"
    assert direction_of(html + FILL) == direction


def test_long_list_of_code_has_its_direction() -> None:
    """MSG-12: with "auto" a browser took six seconds for 14,000 pieces of code, and four for a list of them."""
    assert render("- `word` `word`\n" * 1000).startswith('<div class="block" dir="ltr"><ul>')
