"""The parser that reads JSON in parts: wanted members equal those of the JSON parser, and the rest is skipped."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat.transfer.parsing.json_parts import TREE, Unreadable, objects
from tests.support.effort import cases

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
conversations = st.dictionaries(st.sampled_from(["title", "mapping", "a", "b", '"\\']), values)


@settings(max_examples=cases(50), deadline=None)
@given(st.lists(conversations | values), st.sampled_from([None, 1]), st.booleans())
def test_wanted_members_are_those_of_the_parser(found: list[object], indent: int | None, ascii_only: bool) -> None:
    """The members are the same whatever surrounds them."""
    data = json.dumps(found, indent=indent, ensure_ascii=ascii_only).encode(errors="surrogatepass")
    wanted = ("title", "mapping")
    expected = [
        {key: value for key, value in each.items() if key in wanted} if isinstance(each, dict) else None
        for each in found
    ]
    try:
        assert [each.members for each in objects(data, wanted)] == expected
    except Unreadable:  # a lone surrogate is not valid UTF-8
        assert not ascii_only


@pytest.mark.parametrize(
    "data",
    [
        '{"a"}',
        '{"a":}',
        '{"a":1,}',
        '{"a":1 "b":2}',
        '{"a":"x}',
        '{"a":[1}',
        "[1 x]",
        "{",
        '{"b":01x}',
        '["\n',
        "[nul]",
    ],
)
def test_what_is_not_json_is_unreadable(data: str) -> None:
    """Invalid JSON is refused where it is read: in an object's members and in all built values."""
    with pytest.raises(Unreadable):
        list(objects(data.encode(), ("a",)))


def test_values_before_the_break_are_there() -> None:
    """A truncated file gives the values before the break."""
    found = objects(b'[{"a": 1}, {"a": 2}, {"a"', ("a",))
    assert [next(found).members, next(found).members] == [{"a": 1}, {"a": 2}]
    with pytest.raises(Unreadable):
        next(found)


def test_skipping_takes_no_depth() -> None:
    """Skipping does not recurse, unlike a parser."""
    deep = b"[" * 200_000 + b"]" * 200_000
    [found] = objects(b'{"x":' + deep + b',"a":1}', ("a",))
    assert found.members == {"a": 1}


@settings(max_examples=cases(50), deadline=None)
@given(values, st.sampled_from([None, 1]), st.booleans())
def test_tree_is_what_the_parser_makes_of_it(value: object, indent: int | None, ascii_only: bool) -> None:
    """MSG-10: a tree is built without recursion and equals the parser's."""
    data = json.dumps({TREE: value}, indent=indent, ensure_ascii=ascii_only).encode(errors="surrogatepass")
    try:
        [found] = objects(data, [TREE])
    except Unreadable:  # a lone surrogate is not valid UTF-8
        assert not ascii_only
    else:
        assert found.members == {TREE: value}


@settings(max_examples=cases(100), deadline=None)
@given(st.text('[]{},:"1a \\', max_size=12))
def test_tree_is_refused_where_the_parser_refuses_it(text: str) -> None:
    """MSG-10: unmatched brackets, misplaced separators and invalid keys are refused."""
    data = f'{{"{TREE}":[{text}]}}'
    try:
        wanted = [json.loads(data)]
    except ValueError:
        with pytest.raises(Unreadable):
            list(objects(data.encode(), [TREE]))
    else:
        assert [found.members for found in objects(data.encode(), [TREE])] == wanted


def test_tree_of_any_depth_is_built() -> None:
    """MSG-10: a tree can be twenty thousand levels deep, like LibreChat's conversation of ten thousand messages."""
    [found] = objects(b'{"%s":%s}' % (TREE.encode(), b'[{"a":' * 10_000 + b"1" + b"}]" * 10_000), [TREE])
    assert found.members is not None
    value, depth = found.members[TREE], 0
    while value != 1:
        value, depth = value[0]["a"], depth + 1
    assert depth == 10_000
