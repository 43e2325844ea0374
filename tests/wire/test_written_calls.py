"""Calls that a model is writing: partial arguments of one and of several calls, for every vendor."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from agents.errors import ProviderError
from agents.events import PartDone, ProviderEvent, ToolCallDelta
from agents.messages import ToolCall
from tests.wire import anthropic, openai, responses
from tests.wire.script import Reply
from tests.wire.server import WireServer
from tests.wire.vendors import ANTHROPIC, OPENAI, RESPONSES, Vendor, ask

FIRST = {"path": "a.py", "content": "print('é')\\n"}
SECOND = {"path": "b.py", "content": "2"}


def halves(arguments: dict[str, str]) -> tuple[str, str]:
    text = json.dumps(arguments, ensure_ascii=False)
    return text[: len(text) // 2], text[len(text) // 2 :]


def _openai() -> list[bytes]:
    """Return two calls whose arguments arrive alternately."""
    (a, b), (c, d) = halves(FIRST), halves(SECOND)
    one, two = openai.tool_call(0, "call_1", "write_file", a, b), openai.tool_call(1, "call_2", "write_file", c, d)
    chunks = [one[0], two[0], one[1], two[1], one[2], two[2]]
    return openai.sse(openai.role(), *chunks, openai.finish("tool_calls"))


def _responses() -> list[bytes]:
    """Return two calls whose arguments arrive alternately."""
    items = [
        responses.call_item("call_1", "write_file", json.dumps(FIRST, ensure_ascii=False), 0),
        responses.call_item("call_2", "write_file", json.dumps(SECOND, ensure_ascii=False), 1),
    ]
    (a, b), (c, d) = halves(FIRST), halves(SECOND)
    grown = [
        {"type": "response.function_call_arguments.delta", "output_index": index, "item_id": "fc", "delta": piece}
        for index, piece in ((0, a), (1, c), (0, b), (1, d))
    ]
    begun = [responses.added(index, {**item, "arguments": ""}) for index, item in enumerate(items)]
    ended = [responses.done(index, item) for index, item in enumerate(items)]
    completed = {"type": "response.completed", "response": {"status": "completed", "output": items}}
    return responses.sse(*responses.begin(), *begun, *grown, *ended, completed)


def _anthropic() -> list[bytes]:
    """Return two successive calls, because this vendor never writes two at the same time."""
    calls = [
        event
        for index, arguments in enumerate((FIRST, SECOND))
        for event in anthropic.tool_use(index, f"call_{index + 1}", "write_file", *halves(arguments))
    ]
    return anthropic.sse(anthropic.message_start(), *calls, *anthropic.end("tool_use"))


CASES = [(ANTHROPIC, _anthropic), (OPENAI, _openai), (RESPONSES, _responses)]


async def heard(wire: WireServer, vendor: Vendor, chunks: Sequence[bytes]) -> list[ProviderEvent]:
    wire.script(Reply(chunks))
    provider, seen = vendor.make(wire), list[ProviderEvent]()
    try:
        await ask(provider, seen=seen)
    except ProviderError:
        pass
    finally:
        await provider.close()
    return seen


@pytest.mark.parametrize(("vendor", "answer"), CASES, ids=lambda each: getattr(each, "name", ""))
async def test_calls_are_reported_while_they_are_written(wire: WireServer, vendor: Vendor, answer: object) -> None:
    """RUN-02, UI-10: the final call equals its partial states, whichever call grew in between."""
    assert callable(answer)
    events = await heard(wire, vendor, answer())
    grown: dict[str, str] = {}
    whole: list[ToolCall] = []
    for event in events:
        match event:
            case ToolCallDelta(key, name, text):
                assert name == "write_file"
                grown[key] = grown.get(key, "") + text
            case PartDone(ToolCall() as call, key):
                assert grown[key] == call.raw
                whole.append(call)
    assert [(call.id, call.arguments) for call in whole] == [("call_1", FIRST), ("call_2", SECOND)]
    first_end = next(place for place, event in enumerate(events) if isinstance(event, PartDone))
    assert sum(isinstance(event, ToolCallDelta) for event in events[:first_end]) >= 1
    assert len(grown) == 2


@pytest.mark.parametrize(("vendor", "answer"), CASES, ids=lambda each: getattr(each, "name", ""))
async def test_a_call_that_is_cut_off_is_no_call(wire: WireServer, vendor: Vendor, answer: object) -> None:
    """CTX-03: the beginning of an interrupted call is reported, but it does not become a call."""
    assert callable(answer)
    chunks = answer()
    last = max(place for place, chunk in enumerate(chunks) if b"delta" in chunk and b"content" in chunk)
    events = await heard(wire, vendor, chunks[: 5 if vendor is not ANTHROPIC else min(4, last)])
    assert any(isinstance(event, ToolCallDelta) for event in events)
    assert not any(isinstance(event, PartDone) for event in events)
