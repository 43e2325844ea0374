"""Titles made from the output of a model."""

from __future__ import annotations

import pytest

from chat.services.sessions.titles import title_in


@pytest.mark.parametrize(
    ("reply", "title"),
    [
        ("Slow till", "Slow till"),
        ('"Slow till."', "Slow till"),
        ("  **Title: Slow   till**\nBecause it is.", "Slow till"),
        ("# Slow till", "Slow till"),
        ("标题：《收银机很慢》。", "收银机很慢"),
        ("「結帳很慢」", "結帳很慢"),
        ("A\0B\ud800\x1b[31m\u202eC", "A B [31m C"),
        ("Family 👩\u200d💻 running", "Family 👩\u200d💻 running"),
        ("عنوان قصير", "عنوان قصير"),
        ("Is it fast?", "Is it fast?"),
        ("Learning C#", "Learning C#"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("<think>\nx\n</think>\n\nRome", "Rome"),
        ("Okay, the user wants a title.\n</think>\n\nRome", "Rome"),
        ("", ""),
        ("***", ""),
        ("word " * 40, ""),
    ],
)
def test_title_is_one_line_without_its_dress(reply: str, title: str) -> None:
    """MSG-12: the title is one line without quotes or markup, and any output of a model can be stored and shown."""
    assert title_in(reply) == title
