"""The scripted provider returns exactly its script."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from agents.errors import Overloaded, ProviderError
from agents.events import PartDone, ProviderEvent, ReasoningDelta, ResponseDone, TextDelta, Usage
from agents.messages import Message, Text, Thinking, ToolCall
from agents.providers.base import ListedModel, Request
from agents.providers.scripted import Gate, HangUp, Pause, Reply, ScriptedProvider, Sign, Stop

CALL = ToolCall("c1", "look", {"at": "it"})
REQUEST = Request("scripted", (Message("user", (Text("hi"),)),))


async def said(reply: Reply) -> list[ProviderEvent]:
    return [event async for event in ScriptedProvider([reply]).stream(REQUEST)]


@pytest.mark.parametrize(
    ("reply", "events"),
    [
        ([], [ResponseDone("end", Usage())]),
        (["a", TextDelta("b")], [TextDelta("a"), TextDelta("b"), PartDone(Text("ab")), ResponseDone("end", Usage())]),
        (
            [ReasoningDelta("hm"), Sign({"signature": "s"}), "so", CALL, Usage(5, 2)],
            [
                ReasoningDelta("hm"),
                PartDone(Thinking("hm", "scripted", {"signature": "s"})),
                TextDelta("so"),
                PartDone(Text("so")),
                PartDone(CALL),
                ResponseDone("tool_use", Usage(5, 2)),
            ],
        ),
        (
            [ReasoningDelta("hm"), "so", Stop("max_tokens")],
            [
                ReasoningDelta("hm"),
                PartDone(Thinking("hm", "scripted")),
                TextDelta("so"),
                PartDone(Text("so")),
                ResponseDone("max_tokens", Usage()),
            ],
        ),
        (
            [Sign({"redacted": "x"}), "a", Pause(0), CALL, "b"],
            [
                PartDone(Thinking("", "scripted", {"redacted": "x"})),
                TextDelta("a"),
                PartDone(Text("a")),
                PartDone(CALL),
                TextDelta("b"),
                PartDone(Text("b")),
                ResponseDone("tool_use", Usage()),
            ],
        ),
        (["a", HangUp(), "b"], [TextDelta("a")]),
    ],
)
async def test_script_becomes_events(reply: Reply, events: list[ProviderEvent]) -> None:
    assert await said(reply) == events


async def test_script_raises_where_it_says() -> None:
    stream = ScriptedProvider([["a", Overloaded("busy"), "b"]]).stream(REQUEST)
    assert await anext(stream) == TextDelta("a")
    with pytest.raises(Overloaded):
        await anext(stream)


async def test_replies_follow_each_other_and_end_with_words() -> None:
    provider = ScriptedProvider([["a"], ["b"]])
    for text in "ab":
        assert TextDelta(text) in [event async for event in provider.stream(REQUEST)]
    with pytest.raises(ProviderError, match="no reply for request 3"):
        await anext(provider.stream(REQUEST))
    assert provider.requests == [REQUEST] * 3


async def test_function_answers_each_request_by_itself() -> None:
    provider = ScriptedProvider(lambda request: [request.messages[-1].text.upper()])
    assert TextDelta("HI") in [event async for event in provider.stream(REQUEST)]


async def test_gate_tells_when_it_is_reached_and_holds_until_it_is_opened() -> None:
    gate, seen = Gate(), list[ProviderEvent]()
    provider = ScriptedProvider([["a", gate, "b"]])

    async def consume() -> None:
        async for event in provider.stream(REQUEST):
            seen.append(event)

    task = asyncio.create_task(consume())
    await gate.reached()
    assert seen == [TextDelta("a")]
    assert provider.streaming == 1
    gate.open()
    await task
    assert seen[1] == TextDelta("b")
    assert provider.streaming == 0


async def test_closing_a_stream_is_counted() -> None:
    provider = ScriptedProvider([["a", Gate()]])
    async with aclosing(provider.stream(REQUEST)) as stream:
        await anext(stream)
        assert provider.streaming == 1
    assert provider.streaming == 0


async def test_scripted_provider_lists_its_models_and_closes() -> None:
    provider = ScriptedProvider([], name="house", models=["one", "two"])
    assert (provider.name, await provider.list_models()) == ("house", {"one": ListedModel(), "two": ListedModel()})
    await provider.close()
    assert provider.closed
