"""The names that users may have."""

from __future__ import annotations

import pytest

from chat.names import clean, distinct, lookalike_key, mixes_scripts


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("  Ana \n Kovač ", "Ana Kovač"),
        ("\u202eevil\u202c", "evil"),
        ("A\u200bn\u00ada\ufeff", "Ana"),
        ("\u2800\u3164\u115f\u200d", ""),
        ("Ａｎａ①", "Ana1"),
        ("Zoe\u0301", "Zoé"),
        ("👩🏽\u200d💻 ❤\ufe0f", "👩🏽\u200d💻 ❤\ufe0f"),
        ("علی\u200cرضا", "علی\u200cرضا"),
        ("a\u200db\ufe0f", "ab"),
        ("a\0b\ud800", "ab"),
    ],
)
def test_names_hold_nothing_unseen(written: str, shown: str) -> None:
    """CTX-06: and what makes a letter or an emoji what it is stays."""
    assert clean(written) == shown
    assert clean(shown) == shown


def test_names_that_look_alike_are_one() -> None:
    """CTX-06: by capitals, width, invisible characters, and letters of other alphabets."""
    assert len({lookalike_key(name) for name in ("Ana", "ana", "АnА", "Ａna", "A\u200bna")}) == 1
    assert lookalike_key("Bo") != lookalike_key("Ana")
    assert distinct("Ana", "ana2", ["Bo", "аnа"]) == "Ana (ana2)"
    assert distinct("Ana", "ana2", ["Bo"]) == "Ana"
    assert len(distinct("A" * 300, "b" * 150, ["a" * 300])) == 200


@pytest.mark.parametrize("name", ["аdmin", "Ωmega", "pаypal"])
def test_words_of_mixed_alphabets_are_known(name: str) -> None:
    """MSG-12: one letter that is another alphabet's."""
    assert mixes_scripts(name)


@pytest.mark.parametrize("name", ["admin", "Ольга", "Ольга Smith", "田中たろうX", "김철수A", "José_1", "עדי"])
def test_names_of_one_alphabet_are_fine(name: str) -> None:
    """MSG-12: also those of languages that are written with several, and a word for each."""
    assert not mixes_scripts(name)
