"""Retries: by the SDK before an answer begins and by the loop afterwards, but never multiplied."""

from __future__ import annotations

import asyncio
import socket
from contextlib import aclosing

import pytest

from agents.errors import ConnectionLost, Overloaded, RateLimited
from agents.events import AgentEvent, RetryScheduled, TurnFailed, TurnFinished
from agents.loop import Agent, run
from agents.messages import Message, Text
from tests.wire import Reply, WireServer, openai
from tests.wire.script import Cut
from tests.wire.server import PATIENCE
from tests.wire.vendors import OPENAI, Provider, Vendor

MANY = 12


async def turn(provider: Provider) -> tuple[list[AgentEvent], list[float]]:
    """Return the events of a turn, and the seconds that it would have waited."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    agent, hello = Agent("helper", "model-1", provider), [Message("user", (Text("hello"),))]
    async with asyncio.timeout(PATIENCE), aclosing(run(agent, hello, sleep=sleep)) as events:
        yielded = [event async for event in events]
    await provider.close()
    return yielded, waits


@pytest.mark.parametrize("retries", [0, 1, 2])
@pytest.mark.parametrize(("status", "error"), [(429, RateLimited), (529, Overloaded)])
async def test_refusal_is_asked_again_as_often_as_configured(
    wire: WireServer, vendor: Vendor, status: int, error: type[Exception], retries: int
) -> None:
    """RUN-10: only the SDK repeats the request, and then the user sees the error."""
    wire.script(*[vendor.error(status, "overloaded_error", "wait", retry_after="0.01")] * MANY)
    events, waits = await turn(vendor.make(wire, max_retries=retries))
    assert (len(wire.requests), waits) == (1 + retries, [])
    assert isinstance(events[-1], TurnFailed)
    assert type(events[-1].error) is error


async def test_long_wait_is_made_where_it_is_seen(wire: WireServer, vendor: Vendor) -> None:
    """RUN-10: the loop waits for a Retry-After that the SDK leaves to it."""
    wire.script(vendor.error(429, "rate_limit_error", "wait", retry_after="20"), Reply(vendor.text("ok")))
    events, waits = await turn(vendor.make(wire, max_retries=2))
    assert (waits, len(wire.requests), events[-1]) == ([20.0], 2, TurnFinished("done"))
    assert any(isinstance(event, RetryScheduled) for event in events)


async def test_long_wait_is_not_made_where_retries_are_off(wire: WireServer, vendor: Vendor) -> None:
    """RUN-10: if retries are off, nothing waits or is repeated."""
    wire.script(*[vendor.error(429, "rate_limit_error", "wait", retry_after="20")] * MANY)
    events, waits = await turn(vendor.make(wire, max_retries=0))
    assert (waits, len(wire.requests)) == ([], 1)
    assert isinstance(events[-1], TurnFailed)


def gemini_refusal(delay: object) -> Reply:
    """Return a refusal of Gemini's compatible endpoint, which states the wait in the body."""
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}
    error = {"code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED", "details": [{}, info]}
    return Reply.of_json([{"error": error}], 429)


async def test_long_wait_in_the_body_is_made_where_it_is_seen(wire: WireServer) -> None:
    """RUN-10: the SDK, which does not know this form, does not use up its attempts before the wait is over."""
    wire.script(gemini_refusal("20.5s"), Reply(OPENAI.text("ok")))
    events, waits = await turn(OPENAI.make(wire, max_retries=2))
    assert (waits, len(wire.requests), events[-1]) == ([20.5], 2, TurnFinished("done"))


async def test_short_wait_in_the_body_is_made_by_the_sdk(wire: WireServer) -> None:
    """RUN-10: users do not notice a short wait, as with a header."""
    wire.script(gemini_refusal("0.01s"), Reply(OPENAI.text("ok")))
    events, waits = await turn(OPENAI.make(wire, max_retries=2))
    assert (waits, len(wire.requests), events[-1]) == ([], 2, TurnFinished("done"))


@pytest.mark.parametrize("delay", ["soon", "-3s", "1e9s", 20, None, ["20s"]], ids=str)
async def test_unreadable_wait_in_the_body_is_ignored(wire: WireServer, delay: object) -> None:
    """RUN-10: the request is then refused as one without a stated wait."""
    wire.script(gemini_refusal(delay))
    events, waits = await turn(OPENAI.make(wire, max_retries=0))
    assert isinstance(events[-1], TurnFailed)
    assert isinstance(events[-1].error, RateLimited)
    assert (waits, events[-1].error.retry_after) == ([], None)


async def test_error_inside_the_stream_is_asked_again_by_the_loop(wire: WireServer, vendor: Vendor) -> None:
    """RUN-10: the loop repeats a request whose stream has failed before any text."""
    wire.script(Reply(vendor.failure("overloaded_error", "busy")), Reply(vendor.text("ok")))
    events, waits = await turn(vendor.make(wire, max_retries=2))
    assert (len(waits), len(wire.requests), events[-1]) == (1, 2, TurnFinished("done"))


BROKEN_CALLS = {
    "call that cannot be read": "Failed to call a function. Please adjust your prompt. See 'failed_generation'.",
    "call at the round limit": "Tool choice is none, but model called a tool",
}


@pytest.mark.parametrize("words", BROKEN_CALLS.values(), ids=BROKEN_CALLS)
@pytest.mark.parametrize("in_stream", [False, True])
async def test_call_that_the_server_cannot_read_is_asked_for_again(
    wire: WireServer, words: str, in_stream: bool
) -> None:
    """RUN-10: if Groq refuses a model's tool call, the loop repeats the request, because another answer may succeed."""
    body = openai.error_body(words, code="tool_use_failed")
    refusal = Reply(openai.sse(body)) if in_stream else Reply.of_json(body, 400)
    wire.script(refusal, Reply(OPENAI.text("ok")))
    events, waits = await turn(OPENAI.make(wire, max_retries=2))
    assert (len(waits), len(wire.requests), events[-1]) == (1, 2, TurnFinished("done"))


async def test_call_that_the_server_cannot_read_is_reported_after_three_attempts(wire: WireServer) -> None:
    """RUN-10: a model that always writes wrong calls does not keep the turn running."""
    wire.script(*[openai.error(400, "Failed to call a function.", code="tool_use_failed")] * MANY)
    events, waits = await turn(OPENAI.make(wire, max_retries=2))
    assert (len(waits), len(wire.requests)) == (2, 3)
    assert isinstance(events[-1], TurnFailed)
    assert events[-1].error.remedy == "retry"
    assert str(events[-1].error) == "openai couldn’t read the model’s tool call. It says: Failed to call a function."


async def test_answer_that_breaks_off_before_its_first_word_is_asked_again(wire: WireServer, vendor: Vendor) -> None:
    """RUN-10: the loop repeats a request whose connection was cut before any text."""
    wire.script(Reply([*vendor.opening()[:1], Cut()]), Reply(vendor.text("ok")))
    events, waits = await turn(vendor.make(wire, max_retries=2))
    assert (len(waits), len(wire.requests), events[-1]) == (1, 2, TurnFinished("done"))


async def test_unreachable_server_is_reported_after_the_sdks_retries(vendor: Vendor) -> None:
    """An unreachable server is reported after the SDK's retries (RUN-10)."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        events, waits = await turn(vendor.make(WireServer(reserved.getsockname()[1]), max_retries=1))
    assert (type(events[-1]), waits) == (TurnFailed, [])
    assert isinstance(events[-1], TurnFailed)
    assert isinstance(events[-1].error, ConnectionLost)
