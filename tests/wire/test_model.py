"""The deterministic model that answers when nothing is scripted."""

from __future__ import annotations

import asyncio
import itertools
import sys

import pytest

from agents.events import ProviderEvent, ResponseDone, TextDelta, Usage
from agents.messages import Message, Text, Thinking, ToolCall, ToolResult
from agents.providers.base import ToolSpec
from tests.wire.server import WireServer
from tests.wire.vendors import Vendor, ask, done, parts, plain, request

CALCULATOR = ToolSpec("calculator", "Calculates.", {"properties": {"expression": {"type": "string"}}})


async def test_model_echoes(wire: WireServer, vendor: Vendor) -> None:
    """RUN-01: without a hint, the model repeats the user's text."""
    provider = vendor.make(wire)
    assert plain(await ask(provider, request("hello  there"))) == (Text("You said: hello  there"),)
    await provider.close()


async def test_model_calls_a_tool_and_tells_its_result(wire: WireServer, vendor: Vendor) -> None:
    """RUN-11: a whole tool round with reasoning keeps the rules of both vendors."""
    provider = vendor.make(wire)
    options = {"thinking_budget": 2000} if vendor.name == "anthropic" else {}
    first = request("Think, then calculate 6 * 7", tools=(CALCULATOR,), options=options)
    heard = await ask(provider, first)
    answer = Message("assistant", parts(heard))
    thought, said, call = plain(heard)
    assert isinstance(thought, Thinking)
    assert isinstance(call, ToolCall)
    assert (said, call.arguments) == (Text("Let me calculate that."), {"expression": "6 * 7"})
    result = Message("user", (ToolResult(call.id, "42"),))
    second = request(*first.messages, answer, result, tools=(CALCULATOR,), options=options)
    assert plain(await ask(provider, second))[-1] == Text("The result is 42.")
    await provider.close()


def text_of(events: list[ProviderEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@pytest.mark.parametrize("rate", ["", " at 2000/s"])
async def test_model_streams_as_many_tokens_as_asked(wire: WireServer, vendor: Vendor, rate: str) -> None:
    """RUN-02: the number of tokens is exact, with and without a rate."""
    provider = vendor.make(wire)
    events = await ask(provider, request(f"stream 30 tokens{rate}"))
    assert len(text_of(events).split()) == 30
    assert done(events).usage.output_tokens == 30
    await provider.close()


async def test_stamped_tokens_tell_when_they_left(wire: WireServer, vendor: Vendor) -> None:
    """RUN-02: a benchmark measures the delay of a token from its time stamp."""
    provider = vendor.make(wire)
    events = await ask(provider, request("stream 5 tokens at 1000/s stamped"))
    times = [int(word) for word in text_of(events).split()]
    assert len(times) == 5
    assert all(earlier < later for earlier, later in itertools.pairwise(times))
    await provider.close()


async def test_client_that_leaves_a_paced_stream_is_noticed(wire: WireServer, vendor: Vendor) -> None:
    """RUN-07: the server notices that a client leaves a paced stream."""
    provider = vendor.make(wire)
    task = asyncio.create_task(ask(provider, request("stream 1000000 tokens at 100/s")))
    received = await wire.received(1)
    task.cancel()
    await received.left()
    with pytest.raises(asyncio.CancelledError):
        await task
    await provider.close()


async def test_server_runs_by_itself(vendor: Vendor) -> None:
    """RUN-01: `python -m tests.wire` serves both vendors and prints its address."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.wire", "--port", "0"), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout
    line = (await process.stdout.readline()).decode()
    server = WireServer(int(line.split("ANTHROPIC_BASE_URL=http://127.0.0.1:")[1].split()[0]))
    provider = vendor.make(server)
    events = await ask(provider)
    assert isinstance(events[-1], ResponseDone)
    assert events[-1].usage != Usage()
    await provider.close()
    process.terminate()
    await process.wait()
