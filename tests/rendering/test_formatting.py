"""Durations, token counts and names as users read them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone, translation

from chat.rendering.text import formatting


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0, "0ms"),
        (328, "328ms"),
        (999, "999ms"),
        (1000, "1.0s"),
        (1299, "1.2s"),
        (9999, "9.9s"),
        (10_000, "10s"),
        (35_400, "35s"),
        (59_999, "59s"),
        (60_000, "1m 0s"),
        (83_000, "1m 23s"),
        (3_600_000, "60m 0s"),
    ],
)
def test_duration_is_short(milliseconds: int, words: str) -> None:
    """UI-02: the formats are `328ms` below 1 s, `1.2s` below 10 s, `35s` below 60 s, and `1m 23s` otherwise."""
    assert formatting.duration(milliseconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (90.4, "1 minute 30 seconds"),
        (60, "1 minute"),
        (121, "2 minutes 1 second"),
        (3600, "1 hour"),
        (7205, "2 hours 5 seconds"),
        (0.4, "0 seconds"),
    ],
)
def test_turn_time_is_spelled_out(seconds: float, words: str) -> None:
    """UI-04: the duration is spelled out, as in "Worked for 1 minute 30 seconds"."""
    assert formatting.spelled_duration(seconds) == words


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ({"days": 7}, "7 days"),
        ({"days": 6, "hours": 23}, "7 days"),
        ({"days": 1, "hours": 2}, "1 day"),
        ({"hours": 23, "minutes": 40}, "1 day"),
        ({"hours": 5}, "5 hours"),
        ({"minutes": 20}, "20 minutes"),
        ({"seconds": -5}, "1 minute"),
    ],
)
def test_time_left_is_rounded_to_one_unit(left: dict[str, int], words: str) -> None:
    """The note under a new invitation link and the list of links show the same time."""
    assert formatting.time_left(timezone.now() + timedelta(**left)) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0K"),
        (28_500, "28.5K"),
        (999_949, "999.9K"),
        (999_950, "1.0M"),
        (1_234_567, "1.2M"),
    ],
)
def test_tokens_are_rounded(count: int, words: str) -> None:
    """UI-08: large counts are rounded, as in "28.5K tokens"."""
    assert formatting.tokens(count) == words


@pytest.mark.parametrize("language", ["en", "zh-hans", "zh-hant"])
def test_counts_have_their_digits_grouped(language: str) -> None:
    """UI-13: digits are grouped in Chinese, too, for which Django does not group them."""
    with translation.override(language):
        assert formatting.count(1_234_567) == "1,234,567"


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("Ana Kovač", "AK"),
        ("Ana Maria Kovač", "AK"),
        ("ana", "AN"),
        ("X", "X"),
        ("梅 Mei", "梅"),
        ("Žofie Malá", "Ž"),
        ("🦊 Fox", "FO"),
        ("🎉🎉", "🎉"),
        ("", "?"),
        ("  ", "?"),
        ("…", "?"),
    ],
)
def test_avatar_shows_initials(name: str, letters: str) -> None:
    assert formatting.initials(name) == letters


def test_avatar_color_depends_on_the_name_alone() -> None:
    assert formatting.color("Ana") == formatting.color("Ana")
    assert {formatting.color(f"person {number}") for number in range(200)} == {f"c{n}" for n in range(12)}
