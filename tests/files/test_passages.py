"""Passages of texts, and the words by which they are found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.files.passages import MAX_LENGTH, indexed_words_of, split, words_of

WORDS = "The quick brown fox jumps over the lazy dog. "


@given(st.text(st.sampled_from("ab.。 \n#"), max_size=6_000))
def test_passages_are_short_and_lose_nothing(text: str) -> None:
    """CTX-09: whatever the text, all of its words are in its passages, in order."""
    passages = list(split(text))
    assert all(0 < len(each) <= MAX_LENGTH for each in passages)
    assert "".join("".join(passages).split()) == "".join(text.split())


def test_passages_end_at_paragraphs_headings_and_sentences() -> None:
    """CTX-09: a passage is a unit of the text as far as its length allows."""
    first, second = WORDS * 15, WORDS * 25
    assert list(split(f"{first}\n\n{second}")) == [first.strip(), second.strip()]
    assert list(split(f"{WORDS * 12}\n\n# Two\n\n{WORDS}")) == [(WORDS * 12).strip(), f"# Two\n\n{WORDS.strip()}"]
    assert list(split(f"Short\n\n# Two\n\n{WORDS}")) == [f"Short\n\n# Two\n\n{WORDS.strip()}"]
    assert all(each.endswith(".") for each in split(WORDS * 200))
    assert all(each.endswith("。") for each in split("敏捷的棕色狐狸跳过懒狗。" * 500))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Opening Hours", ["the", "opening", "hours"]),
        ("Rückgabe-Fristen", ["ruckgabe", "fristen"]),
        ("ＡＢＣ ﬁt", ["abc", "fit"]),
        ("退款政策", ["退款", "款政", "政策"]),
        ("iPhone手机 x", ["iphone", "手机", "x"]),
        ("값", ["값"]),
        ("snake_case(x=10)", ["snake", "case", "x", "10"]),
        ("a" * 61 + " b", ["b"]),
        ("\"';--", []),
    ],
)
def test_words_are_found_in_any_script(text: str, words: list[str]) -> None:
    """CTX-09: case, accents and width do not matter; where words are not separated, pairs of characters count."""
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Refunds of 款", ["refunds", "of", "款"]),
        ("接受退款。退货 ab", ["接受", "受退", "退款", "款", "退货", "货", "ab"]),
    ],
)
def test_each_character_begins_an_indexed_word(text: str, words: list[str]) -> None:
    """CTX-09: a search for a single character finds it at each place, also at the end of a row."""
    assert indexed_words_of(text) == words
    assert indexed_words_of("你好。好的") == ["你好", "好的", "的"]
    assert indexed_words_of("=====") == []
