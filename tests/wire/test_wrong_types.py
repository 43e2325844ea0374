"""Answers in which a name, an id or a text has the wrong type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agents.errors import ResponseBroken
from agents.messages import Text
from tests.wire import anthropic, openai, responses
from tests.wire.script import Reply
from tests.wire.server import WireServer
from tests.wire.vendors import ANTHROPIC, OPENAI, RESPONSES, Vendor, ask, parts

WRONG: tuple[Any, ...] = (5, 1.5, True, ["x"], {"a": 1})


def _of_anthropic(wrong: Any) -> Iterator[list[bytes]]:
    for fields in ({"id": wrong}, {"name": wrong}):
        events = anthropic.tool_use(0, "toolu_1", "add", "{}")
        events[0]["content_block"] |= fields
        yield anthropic.sse(anthropic.message_start(), *events, *anthropic.end("tool_use"))
    yield anthropic.sse(anthropic.message_start(), *anthropic.tool_use(0, "toolu_1", "add", wrong), *anthropic.end())
    hidden = {"type": "redacted_thinking", "data": wrong}
    start = {"type": "content_block_start", "index": 0, "content_block": hidden}
    stop = {"type": "content_block_stop", "index": 0}
    yield anthropic.sse(anthropic.message_start(), start, stop, *anthropic.end())


def _of_openai(wrong: Any) -> Iterator[list[bytes]]:
    for fields in ({"id": wrong}, {"name": wrong}):
        function = {"name": fields.get("name", "add"), "arguments": "{}"}
        call = {"index": 0, "id": fields.get("id", "call_1"), "type": "function", "function": function}
        yield openai.sse(openai.chunk({"tool_calls": [call]}), openai.finish("tool_calls"))


def _of_responses(wrong: Any) -> Iterator[list[bytes]]:
    for fields in ({"call_id": wrong}, {"name": wrong}):
        item = responses.call_item("call_1", "add", "{}") | fields
        yield responses.sse(*responses.whole([responses.done(0, item)]))
    yield responses.sse(*responses.whole(responses.message(0, "hi", phase=wrong)))
    opened = responses.added(0, responses.call_item("call_1", "add", ""))
    piece = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": wrong}
    yield responses.sse(*responses.begin(), opened, piece)


ANSWERS = [
    (vendor, answer)
    for vendor, answers in ((ANTHROPIC, _of_anthropic), (OPENAI, _of_openai), (RESPONSES, _of_responses))
    for wrong in WRONG
    for answer in answers(wrong)
]


@pytest.mark.parametrize(("vendor", "answer"), ANSWERS, ids=lambda value: getattr(value, "name", ""))
async def test_wrong_type_is_an_unexpected_response(wire: WireServer, vendor: Vendor, answer: list[bytes]) -> None:
    """RUN-10: the user reads that the response is not in the vendor's format, instead of an internal error."""
    wire.script(Reply(answer))
    provider = vendor.make(wire)
    with pytest.raises(ResponseBroken, match="Unexpected response"):
        await ask(provider)
    await provider.close()


@pytest.mark.parametrize("wrong", [["x"], {"a": 1}], ids=str)
async def test_wrong_type_of_the_reason_for_the_end(wire: WireServer, wrong: Any) -> None:
    """RUN-10: an end whose reason cannot be read is reported in the same way."""
    wire.script(
        Reply(anthropic.sse(anthropic.message_start(), *anthropic.text(0, "hi"), *anthropic.end(wrong))),
        Reply(openai.sse(*openai.text("hi"), openai.finish(wrong))),
    )
    for vendor in (ANTHROPIC, OPENAI):
        provider = vendor.make(wire)
        with pytest.raises(ResponseBroken, match="Unexpected response"):
            await ask(provider)
        await provider.close()


async def test_wrong_type_in_an_answer_that_is_not_streamed(wire: WireServer, vendor: Vendor) -> None:
    """RUN-10: a document is read as carefully as a stream."""
    bodies = {
        "anthropic": {"type": "message", "content": [{"type": "tool_use", "id": "a", "name": 5}]},
        "openai": {"choices": [{"message": {"tool_calls": [{"id": 5, "function": {"name": "add"}}]}}]},
        "responses": {"status": "completed", "output": [None]},
    }
    wire.script(Reply.of_json(bodies[vendor.name]))
    provider = vendor.make(wire)
    with pytest.raises(ResponseBroken, match="Unexpected response"):
        await ask(provider)
    await provider.close()


@pytest.mark.parametrize("wrong", WRONG, ids=str)
async def test_wrong_type_of_an_items_id_counts_as_no_id(wire: WireServer, wrong: Any) -> None:
    """MSG-08: the item is kept, and goes back to OpenAI without the id."""
    item = responses.message_item("hi") | {"id": wrong}
    wire.script(Reply(responses.sse(*responses.whole([responses.done(0, item)], responses.message(1, "there")))))
    provider = RESPONSES.make(wire)
    assert parts(await ask(provider)) == (Text("hi"), Text("there", {"item_id": "msg_0_1"}))
    await provider.close()
