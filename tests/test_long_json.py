"""Long JSON of clients is parsed with the same result as by the standard parser, or refused before it takes long."""

from __future__ import annotations

import json
from contextlib import suppress
from time import thread_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat import long_json
from chat.command_frames import MalformedCommand, longest_frame, parse
from tests.support.effort import cases

values = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.text(max_size=3), max_size=3)


@settings(max_examples=cases(30), deadline=None)
@given(st.dictionaries(st.text(max_size=3), values, max_size=5), st.booleans(), st.sampled_from([None, 1]))
def test_long_objects_are_parsed_as_short_ones(found: dict[str, object], ascii_only: bool, indent: int | None) -> None:
    """The limit is where the ways part; the values are the same."""
    whole = {**found, "text": '\\"é\ud800😀' * 40_000}
    text = json.dumps(whole, ensure_ascii=ascii_only, indent=indent)
    assert len(text) > long_json.SHORT
    assert long_json.loads(text) == whole


@settings(max_examples=cases(30), deadline=None)
@given(st.dictionaries(st.text(max_size=3), values, max_size=5), st.lists(st.booleans(), max_size=6))
def test_long_strings_may_be_deep(found: dict[str, object], places: list[bool]) -> None:
    """In objects and arrays, up to DEPTH of them in each other."""
    whole: object = "x" * long_json.SHORT
    for is_object in places:
        whole = {**found, "inner": whole} if is_object else [found, whole, found]
    whole = {"type": "answer", "value": whole}
    assert long_json.loads(json.dumps(whole)) == whole


def test_frame_that_is_too_long_says_so_to_the_client_that_waits() -> None:
    """UI-12: `ref` is that of the frame, though the frame cannot be read."""
    with pytest.raises(MalformedCommand, match="Only text fields may be long") as refused:
        parse(json.dumps({"type": "answer", "ref": "a7", "value": [0] * long_json.SHORT}))
    assert refused.value.ref == "a7"


LONG = "x" * long_json.SHORT
MAX_FRAME_LENGTH = longest_frame()


@pytest.mark.parametrize(
    "text",
    [
        f'["{LONG}"]',
        f'"{LONG}"',
        f'{{"a":"{LONG}"',
        f'{{"a":"{LONG}"}} x',
        f'{{"a":"{LONG}",}}',
        f'{{"a" "{LONG}"}}',
        f'{{"a":"{LONG}","b":}}',
        f'{{"a":"{LONG}" "b":1}}',
        f'{{"a":"{LONG}","b":NaN}}',
        "[" * 300_000,
        '{"a":' * 100_000,
        '{"a":' * 10 + f'"{LONG}"' + "}" * 10,
        '{"a":[' + f'"{LONG}"' + ',"b"' * long_json.MAX_MEMBERS + "]}",
        '{"a":[' + "0," * 200_000 + "0]}",
        "{" + ",".join(f'"{number}":0' for number in range(50_000)) + "}",
    ],
)
def test_other_long_texts_are_refused(text: str) -> None:
    """No JSON, or JSON that no command and no body of a request is."""
    with pytest.raises(ValueError):
        long_json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"type": "send", "text": "中" * 2_000_000}),
        '{"type":"send","text":[' + "0," * (MAX_FRAME_LENGTH // 2 - 20) + "0]}",
        "[" + "{}," * (MAX_FRAME_LENGTH // 3 - 20) + "{}]",
        '{"' + 'a":0,"' * (MAX_FRAME_LENGTH // 6 - 20) + 'a":0}',
        '{"a":["' + '\\"' * (MAX_FRAME_LENGTH // 2 - 20),
    ],
    ids=["text", "numbers", "objects", "members", "a string without an end"],
)
def test_no_frame_holds_up_the_event_loop(text: str) -> None:
    """The largest frames that are taken: CPU time of this thread, which other processes do not change."""
    started = thread_time()
    with suppress(MalformedCommand):
        parse(text)
    assert thread_time() - started < 0.1
