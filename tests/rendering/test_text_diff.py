"""The difference of two texts: exact, readable, and in bounded time."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.rendering.text.text_diff import AROUND, MAX_LENGTH, MAX_PIECES, Piece, difference, pieces_for_display

Change = tuple[str, str]
SENTENCES = "".join(f"Sentence {number}. " for number in range(1_000))
TEXTS = st.text(st.sampled_from("ab \n中文é.，😀"), max_size=60)


def changes(pieces: list[Piece]) -> list[Change]:
    return [(piece.kind, piece.text) for piece in pieces]


def side(pieces: list[Piece], kind: str) -> str:
    return "".join(piece.text for piece in pieces if piece.kind in ("same", kind))


@given(TEXTS, TEXTS)
def test_both_texts_are_in_their_difference(before: str, after: str) -> None:
    """MSG-11: the pieces give exactly both texts, and adjacent pieces have different kinds."""
    pieces = difference(before, after)
    assert (side(pieces, "gone"), side(pieces, "new")) == (before, after)
    kinds = [piece.kind for piece in pieces]
    assert all(one != other for one, other in pairwise(kinds))
    assert all(piece.text for piece in pieces)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("Be brief.", "Be kind.", [("same", "Be "), ("gone", "brief"), ("new", "kind"), ("same", ".")]),
        ("a cat", "a cart", [("same", "a "), ("gone", "cat"), ("new", "cart")]),
        ("one two", "three four", [("gone", "one two"), ("new", "three four")]),
        (
            "Say it in verse and rhyme",
            "Be brief and kind",
            [("gone", "Say it in verse and rhyme"), ("new", "Be brief and kind")],
        ),
        (
            "a b c d",
            "x b y d",
            [("gone", "a"), ("new", "x"), ("same", " b "), ("gone", "c"), ("new", "y"), ("same", " d")],
        ),
        ("请简短回答", "请详细回答", [("same", "请"), ("gone", "简短"), ("new", "详细"), ("same", "回答")]),
        ("请" * 30_000 + "简", "请" * 30_000 + "详", [("same", "请" * 30_000), ("gone", "简"), ("new", "详")]),
        (
            "Old words. " + SENTENCES + "More old words.",
            "New words. " + SENTENCES + "More new words.",
            [
                ("gone", "Old"),
                ("new", "New"),
                ("same", " words. " + SENTENCES + "More "),
                ("gone", "old"),
                ("new", "new"),
                ("same", " words."),
            ],
        ),
        ("same", "same", [("same", "same")]),
        ("", "new", [("new", "new")]),
        ("", "", []),
    ],
)
def test_whole_words_are_compared(before: str, after: str, expected: list[Change]) -> None:
    """MSG-11: words are compared as a whole, and scripts without spaces by letter."""
    assert changes(difference(before, after)) == expected


def test_long_stretches_are_cut_and_counted() -> None:
    """MSG-11: unchanged text is shown only beside changes."""
    before = "x " * 1000 + "old" + " y" * 1000
    pieces = pieces_for_display(before, before.replace("old", "new"))
    head, gone, new, tail = pieces
    assert (head.text, head.end, head.left_out) == ("", ("x " * 1000)[-AROUND:], 2000 - AROUND)
    assert (gone.text, new.text) == ("old", "new")
    assert (tail.text, tail.end, tail.left_out) == ((" y" * 1000)[:AROUND], "", 2000 - AROUND)


def test_line_break_alone_is_seen() -> None:
    assert [piece.shown for piece in pieces_for_display("a b", "a\n\nb")] == ["a", " ", "⏎\n⏎\n", "b"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a b " * 250_000, "b a " * 250_000),
        ("a\n" * 500_000, "b\n" * 500_000),
        ("中文" * 500_000, "文中" * 500_000),
        ("a " * 499, "b a " * 249),
        ("x" * 1_000_000, "y" * 1_000_000),
        ("x" * 1_000_000, "x" * 1_000_000 + "y"),
    ],
)
def test_giant_texts_are_bounded(before: str, after: str) -> None:
    """MSG-12: the difference of two very different megabytes takes bounded time, and the shown pieces are small."""
    pieces = pieces_for_display(before, after)
    assert len(pieces) <= MAX_PIECES + 1
    assert sum(len(piece.text) + len(piece.end) for piece in pieces) <= 2 * MAX_LENGTH + MAX_PIECES * (
        2 * AROUND + MAX_LENGTH
    )
