"""Characters that a stream splits, and JSON that is nested too deeply, for both vendors."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from agents.errors import ResponseBroken
from agents.events import ProviderEvent
from agents.messages import Part, Text, Thinking, ToolCall
from tests.wire import Reply, WireServer, anthropic, openai, responses
from tests.wire.vendors import OPENAI, RESPONSES, Vendor, ask, done, plain

SMILE = "\ud83d\ude00"  # two code units, as in JavaScript, which JSON may escape one by one
DEEP = 100_000


def splits(text: str) -> Iterator[list[str]]:
    """Yield every way to split this text into pieces."""
    for cuts in range(2 ** (len(text) - 1)):
        pieces = [text[0]]
        for place, unit in enumerate(text[1:]):
            if cuts >> place & 1:
                pieces.append("")
            pieces[-1] += unit
        yield pieces


def thought_and_said(vendor: Vendor, pieces: list[str]) -> list[bytes]:
    if vendor is OPENAI:
        reasoning, text = openai.reasoning(*pieces), openai.text(*pieces)
        return openai.sse(openai.role(), *reasoning, *text, openai.finish())
    if vendor is RESPONSES:
        thought = responses.reasoning(0, pieces, tail="a")
        return responses.sse(*responses.whole(thought, responses.message(1, *pieces, tail="a")))
    thinking = [anthropic.block_start(0, {"type": "thinking", "thinking": "", "signature": ""})]
    thinking += [anthropic.delta(0, {"type": "thinking_delta", "thinking": piece}) for piece in pieces]
    thinking.append(anthropic.block_stop(0))
    return anthropic.sse(anthropic.message_start(), *thinking, *anthropic.text(1, *pieces), *anthropic.end())


def called(vendor: Vendor, fragments: list[str]) -> list[bytes]:
    if vendor is OPENAI:
        return openai.sse(openai.role(), *openai.tool_call(0, "c", "say", *fragments), openai.finish("tool_calls"))
    if vendor is RESPONSES:
        return responses.sse(*responses.whole(responses.function_call(0, "c", "say", *fragments)))
    call = anthropic.tool_use(0, "c", "say", *fragments)
    return anthropic.sse(anthropic.message_start(), *call, *anthropic.end("tool_use"))


async def heard(wire: WireServer, vendor: Vendor, chunks: list[bytes]) -> list[ProviderEvent]:
    wire.script(Reply(chunks))
    provider = vendor.make(wire)
    events = await ask(provider)
    done(events)
    await provider.close()
    return events


def text_of(part: Part) -> str:
    assert isinstance(part, Text | Thinking)
    return part.text


@pytest.mark.parametrize("units", [f"a{SMILE}b", f"{SMILE}{SMILE}", f"é{SMILE}"], ids=ascii)
async def test_character_cut_in_two_is_whole_again(wire: WireServer, vendor: Vendor, units: str) -> None:
    """MSG-12: wherever a server splits text or reasoning, the deltas add up to the part."""
    whole = units.replace(SMILE, "😀")
    for pieces in splits(units):
        events = await heard(wire, vendor, thought_and_said(vendor, pieces))
        assert [text_of(part) for part in plain(events)] == [whole, whole], pieces


async def test_arguments_cut_in_two_are_whole_again(wire: WireServer, vendor: Vendor) -> None:
    """MSG-12, MSG-08: split arguments are joined exactly."""
    for pieces in splits(f"{SMILE}b"):
        fragments = ['{"a": "', *pieces, '"}']
        events = await heard(wire, vendor, called(vendor, fragments))
        assert plain(events) == (ToolCall("c", "say", {"a": "😀b"}, '{"a": "😀b"}'),), pieces


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        (["a\ud83d"], "a\ufffd"),
        (["\ud83d"], "\ufffd"),
        (["a\ud83d", "b"], "a\ufffdb"),
        (["a", "\ude00b"], "a\ufffdb"),
        (["\ud83d", "\ud83d", "\ude00"], "\ufffd😀"),
        (["\ude00\ud83d"], "\ufffd\ufffd"),
    ],
    ids=ascii,
)
async def test_half_that_stays_alone_is_replaced(
    wire: WireServer, vendor: Vendor, pieces: list[str], whole: str
) -> None:
    """MSG-12: a single half is replaced once in its place, nothing beside it is lost, and the next part begins without
    it."""
    events = await heard(wire, vendor, thought_and_said(vendor, pieces))
    assert [text_of(part) for part in plain(events)] == [whole, whole]
    called_with = await heard(wire, vendor, called(vendor, ['{"a": "', *pieces, '"}']))
    assert plain(called_with) == (ToolCall("c", "say", {"a": whole}, f'{{"a": "{whole}"}}'),)


async def test_half_in_a_name_is_replaced(wire: WireServer, vendor: Vendor) -> None:
    """MSG-12: a half in a name, which arrives in one piece, is replaced immediately."""
    chunks = [chunk.replace(b'"say"', rb'"s\ud83d"') for chunk in called(vendor, ["{}"])]
    assert plain(await heard(wire, vendor, chunks)) == (ToolCall("c", "s\ufffd", {}, "{}"),)


async def test_arguments_without_a_bottom_are_kept_as_text(wire: WireServer, vendor: Vendor) -> None:
    """MSG-10: arguments nested too deeply are kept as text, and the tool refuses them."""
    text = '{"a":' * DEEP
    events = await heard(wire, vendor, called(vendor, [text]))
    assert plain(events) == (ToolCall("c", "say", {"_raw": text}, text),)


async def test_event_without_a_bottom_is_unreadable(wire: WireServer, vendor: Vendor) -> None:
    """MSG-10, RUN-10: an event nested too deeply gives the same error as one that is not JSON."""
    wire.script(Reply([*vendor.opening("half"), b"data: " + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"\n\n"]))
    provider = vendor.make(wire)
    with pytest.raises(ResponseBroken):
        await ask(provider)
    await provider.close()


def test_splits_are_all_there_are() -> None:
    assert [json.dumps(one) for one in splits("abc")] == ['["abc"]', '["a", "bc"]', '["ab", "c"]', '["a", "b", "c"]']
