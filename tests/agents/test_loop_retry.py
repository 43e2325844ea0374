"""Retries of failed requests: only for temporary failures."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

import pytest

from agents.errors import (
    AuthenticationFailed,
    ConnectionLost,
    ContextTooLong,
    ModelNotFound,
    Overloaded,
    ProviderError,
    RateLimited,
    RequestRejected,
    ResponseBroken,
    ResponseTimedOut,
)
from agents.events import (
    AgentEvent,
    PartDone,
    ReasoningDelta,
    ResponseStarted,
    RetryScheduled,
    TextDelta,
    TurnFailed,
    TurnFinished,
)
from agents.loop import MAX_ATTEMPTS, MAX_RETRY_DELAY, Agent, Refresh, run
from agents.messages import Message, Text, ToolCall
from agents.providers.scripted import Reply, ScriptedProvider, Step
from agents.tools import tool

HELLO = [Message("user", (Text("hello"),))]
STARTED = ResponseStarted("scripted", "scripted")


async def play(provider: ScriptedProvider, refresh: Refresh | None = None) -> tuple[list[AgentEvent], list[float]]:
    """Return the events, and the seconds that the loop would have waited."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    agent = Agent("helper", "scripted", provider)
    async with aclosing(run(agent, HELLO, refresh=refresh, sleep=sleep)) as events:
        return [event async for event in events], waits


@pytest.mark.parametrize("error", [Overloaded("a"), RateLimited("a"), ConnectionLost("a"), ResponseTimedOut("a")])
async def test_transient_failure_before_any_text_is_asked_again(error: ProviderError) -> None:
    """RUN-10: each attempt has its own ResponseStarted, from which the first token is timed."""
    events, waits = await play(ScriptedProvider([[error], ["fine"]]))
    assert events[:4] == [STARTED, RetryScheduled(1, waits[0], error), STARTED, TextDelta("fine")]
    assert events[-1] == TurnFinished("done")


async def test_waiting_grows_and_ends() -> None:
    """RUN-10: the back-off is exponential with jitter, and after the last attempt the error is reported."""
    error = Overloaded("busy")
    provider = ScriptedProvider([[error]] * MAX_ATTEMPTS)
    events, waits = await play(provider)
    assert events[-1] == TurnFailed(error)
    assert len(provider.requests) == MAX_ATTEMPTS
    assert len(waits) == MAX_ATTEMPTS - 1
    assert all(0.75 * 2**n <= wait <= 1.25 * 2**n for n, wait in enumerate(waits))


async def test_retry_after_is_honored() -> None:
    """A retry waits for the time in Retry-After (RUN-10)."""
    _, waits = await play(ScriptedProvider([[RateLimited("later", retry_after=17)], ["fine"]]))
    assert waits == [17]


async def test_retry_after_beyond_the_limit_is_reported_immediately() -> None:
    """RUN-10: a Retry-After beyond the limit is reported immediately instead of waiting for an hour."""
    error = RateLimited("tomorrow", retry_after=MAX_RETRY_DELAY + 1)
    events, waits = await play(ScriptedProvider([[error]]))
    assert (events, waits) == ([STARTED, TurnFailed(error)], [])


@pytest.mark.parametrize(
    "error",
    [
        AuthenticationFailed("key"),
        ModelNotFound("name"),
        RequestRejected("no"),
        ContextTooLong("long"),
        ResponseBroken("what"),
        ProviderError("other"),
    ],
)
async def test_permanent_failure_is_reported_without_retries(error: ProviderError) -> None:
    """A permanent failure is reported without retries (RUN-10)."""
    events, waits = await play(ScriptedProvider([[error]]))
    assert (events, waits) == ([STARTED, TurnFailed(error)], [])


@pytest.mark.parametrize("shown", ["Hel", ReasoningDelta("Hm"), ToolCall("c", "x", {})])
async def test_nothing_is_asked_again_once_something_was_shown(shown: Step) -> None:
    """RUN-10: after any output was shown there is no retry, because the output would be repeated."""
    error = ConnectionLost("cut")
    reply: Reply = [shown, error]
    provider = ScriptedProvider([reply])
    events, waits = await play(provider)
    assert (events[-1], waits, len(provider.requests)) == (TurnFailed(error), [], 1)


async def test_retry_asks_the_agent_as_it_is_by_then() -> None:
    """RUN-10, RUN-16: a retry uses the present model, which a user may have changed during the wait."""
    provider = ScriptedProvider([[Overloaded("busy")]])
    other = ScriptedProvider([["here"]], name="other")

    async def refresh() -> tuple[Agent, Sequence[Message]]:
        return replace(Agent("helper", "scripted", provider), provider=other, model="calm"), HELLO

    events, _ = await play(provider, refresh)
    assert ResponseStarted("calm", "other") in events
    assert events[-1] == TurnFinished("done")


async def test_later_rounds_have_their_own_attempts() -> None:
    """RUN-10: failures of one response do not count against the next."""

    @tool()
    async def noop() -> None:
        """Do nothing."""

    busy: Reply = [Overloaded("busy", retry_after=1)]
    provider = ScriptedProvider([busy, busy, [ToolCall("c", "noop", {})], busy, busy, ["done"]])
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async with aclosing(run(Agent("h", "scripted", provider, tools=(noop,)), HELLO, sleep=sleep)) as events:
        yielded = [event async for event in events]
    assert yielded[-1] == TurnFinished("done")
    assert PartDone(Text("done")) in yielded
    assert waits == [1] * 4
