"""Text from any value, without exceptions (MSG-10, MSG-12)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agents.safe_text import LIMIT, clean, cut, safe_text


class Color(Enum):
    RED = "red"


class Model(BaseModel):
    n: int
    nested: list[Model] = []


@dataclass
class Point:
    x: float
    label: str


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


class HostileDict(dict[str, int]):
    def items(self) -> Any:
        raise RuntimeError("no")


circle: list[Any] = [1]
circle.append({"again": circle})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ("a\x00b\ud800c", "a\ufffdb\ufffdc"),
        ("🎉 عربى 中文\r\n\t\x1b[1m", "🎉 عربى 中文\r\n\t\x1b[1m"),
        (None, "null"),
        (True, "true"),
        (7, "7"),
        (0.1, "0.1"),
        (float("nan"), "nan"),
        ([float("inf"), -float("inf")], '["inf", "-inf"]'),
        (Decimal("1.50"), "1.50"),
        (Color.RED, "red"),
        (datetime(2026, 2, 28, 14, 30, tzinfo=UTC), "2026-02-28T14:30:00+00:00"),
        (PurePosixPath("/a/b"), "/a/b"),
        (b"bytes \xc3\xa9", "bytes é"),
        (b"\x89PNG\r\n\xff", "[7 bytes of binary data]"),
        (b"a\x00b", "[3 bytes of binary data]"),
        (bytearray(b"x"), "x"),
        ({"a": {1}, 2: (3, None)}, '{"a": [1], "2": [3, null]}'),
        ({"中": "文\x00"}, '{"中": "文\ufffd"}'),
        (Model(n=1, nested=[Model(n=2)]), '{"n": 1, "nested": [{"n": 2, "nested": []}]}'),
        ([Point(1.5, "p")], '[{"x": 1.5, "label": "p"}]'),
        (circle, '[1, {"again": "[circular]"}]'),
        ([circle[0], "s", "s"], '[1, "s", "s"]'),
        (ValueError("wrong"), "wrong"),
        (Hostile(), "[Hostile: cannot be shown]"),
        ([Hostile()], '["[Hostile: cannot be shown]"]'),
        (HostileDict(a=1), "[HostileDict: cannot be shown]"),
        ([10**5000], '["[an integer of 16,610 bits]"]'),
        (range(3), "range(0, 3)"),
        (Model, "<class 'tests.agents.test_tools_safe_text.Model'>"),
    ],
)
def test_safe_text_of(value: object, text: str) -> None:
    assert safe_text(value) == text


def test_safe_text_of_an_endless_generator_does_not_read_it() -> None:
    assert safe_text(n for n in iter(int, 1)).startswith("<generator")


def test_safe_text_of_something_deep() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert "[too deep]" in safe_text(deep)


@pytest.mark.parametrize(
    "value",
    [
        "x" * (3 * LIMIT),
        ["x" * 1000] * LIMIT,
        {str(n): n for n in range(LIMIT)},
        [[0] * 1000] * 1000,
        "\x00" * 2 * LIMIT,
    ],
)
def test_safe_text_of_something_huge_is_cut(value: object) -> None:
    text = safe_text(value)
    assert len(text) < LIMIT * 1.5 + 100
    assert "[cut" in text


class Endless(Sequence[int]):
    """A huge sequence that counts its reads."""

    def __init__(self) -> None:
        self.read = 0

    def __len__(self) -> int:
        return 10**12

    def __getitem__(self, index: Any) -> Any:
        self.read += 1
        return index


class EndlessMapping(Mapping[int, int]):
    """A huge mapping from each number to itself, which counts its reads."""

    def __init__(self) -> None:
        self.read = 0

    def __len__(self) -> int:
        return 10**12

    def __iter__(self) -> Iterator[int]:
        return iter(range(10**12))

    def __getitem__(self, key: int) -> int:
        self.read += 1
        return key


def test_safe_text_reads_no_more_of_a_mapping_than_it_shows() -> None:
    endless = EndlessMapping()
    assert safe_text(endless, limit=1000).startswith('{"0": 0, "1": 1, ')
    assert endless.read < 1000


def test_safe_text_reads_no_more_than_it_shows() -> None:
    endless = Endless()
    text = safe_text([{"many": endless}], limit=1000)
    assert text.startswith('[{"many": [0, 1, 2, ')
    assert text.endswith("[cut after 1,000 characters]")
    assert endless.read < 1000


def test_cut_says_how_much_there_was() -> None:
    assert cut("abcdef", 3) == "abc\n[cut after 3 characters]"
    assert cut("abc", 3) == "abc"


def test_shared_parts_are_not_circular() -> None:
    part = {"a": 1}
    assert safe_text([part, part]) == '[{"a": 1}, {"a": 1}]'


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary() | st.datetimes()
    | st.decimals() | st.builds(Hostile) | st.builds(timedelta),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner),
)  # fmt: skip


@given(anything, st.integers(1, 200))
def test_safe_text_is_always_storable_and_bounded(value: object, limit: int) -> None:
    text = safe_text(value, limit)
    text.encode()
    assert "\x00" not in text
    assert len(text) <= limit + 100


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text("aé中🎉"),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("aé中🎉"), inner),
)


@given(st.lists(plain) | st.dictionaries(st.text("ab"), plain))
def test_structured_values_survive_as_json(value: object) -> None:
    """MSG-07: structured results are kept as JSON."""
    assert json.loads(safe_text(value)) == value


@given(st.text(st.characters()))
def test_clean_changes_only_what_cannot_be_stored(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert len(cleaned) == len(text)
    assert all(new == old or (new == "\ufffd" and (old == "\x00" or "\ud800" <= old <= "\udfff"))
               for new, old in zip(cleaned, text, strict=True))  # fmt: skip
