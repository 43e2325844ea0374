"""The events of a turn: responses, tool rounds, natural breaks and limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from agents.errors import AnswerRefused, ContextTooLong, OutputLimitReached, ProviderError, ResponseBroken
from agents.events import (
    AgentEvent,
    PartDone,
    ProviderEvent,
    ResponseDone,
    ResponseStarted,
    RoundLimitReached,
    TextDelta,
    ToolReturned,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    Usage,
)
from agents.loop import MAX_PAUSES, NOT_RUN_CUT, NOT_RUN_LIMIT, Agent, CheckPending, Refresh, limit_note, run
from agents.messages import Message, Text, ToolCall, ToolResult
from agents.providers.base import Request
from agents.providers.scripted import HangUp, Reply, ScriptedProvider, Stop
from agents.tools import tool

HELLO = [Message("user", (Text("hello"),))]
STARTED = ResponseStarted("scripted", "scripted")


@tool()
async def double(n: int) -> int:
    """Double a number."""
    return 2 * n


def call(name: str = "double", number: int = 1, **arguments: Any) -> ToolCall:
    return ToolCall(f"c{number}", name, arguments)


def agent(*replies: Reply, **fields: Any) -> tuple[Agent, ScriptedProvider]:
    provider = ScriptedProvider(replies)
    return Agent("helper", "scripted", provider, tools=(double,), **fields), provider


async def collect(
    agent: Agent,
    history: Sequence[Message] = HELLO,
    check_pending: CheckPending | None = None,
    refresh: Refresh | None = None,
) -> list[AgentEvent]:
    async with aclosing(run(agent, history, check_pending, refresh=refresh)) as events:
        return [event async for event in events]


def never_twice(events: Sequence[AgentEvent]) -> None:
    """CTX-03: check that every reported call has exactly one result."""
    calls = [event.part.id for event in events if isinstance(event, PartDone) and isinstance(event.part, ToolCall)]
    results = [event.result.call_id for event in events if isinstance(event, ToolReturned)]
    assert sorted(calls) == sorted(results)
    assert len(set(calls)) == len(calls)


async def test_turn_without_tools_is_one_response() -> None:
    helper, provider = agent(["Good ", "day", Usage(3, 2)], system="Be kind.", max_tokens=50, options={"effort": "low"})
    assert await collect(helper) == [
        STARTED,
        TextDelta("Good "),
        TextDelta("day"),
        PartDone(Text("Good day")),
        ResponseDone("end", Usage(3, 2)),
        TurnFinished("done"),
    ]
    (request,) = provider.requests
    assert (request.system, request.max_tokens, request.options) == ("Be kind.", 50, {"effort": "low"})
    assert request.messages == tuple(HELLO)
    assert [spec.name for spec in request.tools] == ["double"]


@pytest.mark.parametrize("wrong", [10**12, -1, True, 1.5, "3"], ids=str)
async def test_wrong_token_count_is_left_out(wrong: Any) -> None:
    """MSG-06: a wrong count of a server must not use up the quota of a day."""
    helper, _provider = agent(["Good day", Usage(wrong, 2)])

    assert ResponseDone("end", Usage(None, 2)) in await collect(helper)


async def test_tool_round_feeds_the_next_response() -> None:
    """RUN-11: results go back to the model in the order of the calls."""
    first, second = call(n=4), call(n=5, number=2)
    helper, provider = agent(["Let me see.", first, second], ["8 and 10"])
    events = await collect(helper)
    assert events[5:10] == [
        ResponseDone("tool_use", Usage()),
        ToolStarted(first),
        ToolStarted(second),
        ToolReturned(ToolResult("c1", "8")),
        ToolReturned(ToolResult("c2", "10")),
    ]
    assert provider.requests[1].messages == (
        *HELLO,
        Message("assistant", (Text("Let me see."), first, second)),
        Message("user", (ToolResult("c1", "8"), ToolResult("c2", "10"))),
    )
    assert events[-1] == TurnFinished("done")


async def test_results_go_to_the_model_in_the_order_of_the_calls() -> None:
    """The order of results does not depend on the tools' speed, so that the provider's cache applies."""
    fast_is_done = asyncio.Event()

    @tool()
    async def slow() -> str:
        """Answer second."""
        await fast_is_done.wait()
        return "slow"

    @tool()
    async def fast() -> str:
        """Answer first."""
        fast_is_done.set()
        return "fast"

    helper, provider = agent([ToolCall("s", "slow", {}), ToolCall("f", "fast", {})], ["ok"])
    events = await collect(replace(helper, tools=(slow, fast)))
    returned = [event.result for event in events if isinstance(event, ToolReturned)]
    assert returned == [ToolResult("f", "fast"), ToolResult("s", "slow")]
    assert provider.requests[1].messages[-1] == Message("user", (returned[1], returned[0]))


async def test_calls_are_run_whatever_the_stop_reason_says() -> None:
    """Calls are run even if the stop reason is "stop", as on some compatible servers."""
    helper, _ = agent([call(n=4), Stop("end")], ["8"])
    assert ToolReturned(ToolResult("c1", "8")) in await collect(helper)


async def test_tool_use_without_calls_ends_the_turn() -> None:
    helper, _ = agent(["Well.", Stop("tool_use")])
    assert (await collect(helper))[-1] == TurnFinished("done")


async def test_unresolved_calls_of_the_history_run_first() -> None:
    """RUN-12: a turn whose history ends with calls begins with those that lack results."""
    said = Message("assistant", (call(n=1), call(n=2, number=2)))
    history = [*HELLO, said, Message("user", (ToolResult("c1", "2"),))]
    helper, provider = agent(["done"])
    events = await collect(helper, history)
    assert events[:3] == [ToolStarted(call(n=2, number=2)), ToolReturned(ToolResult("c2", "4")), STARTED]
    assert provider.requests[0].messages == (*history, Message("user", (ToolResult("c2", "4"),)))


@pytest.mark.parametrize(
    "after",
    [
        [Message("user", (ToolResult("c1", "2"),))],
        [Message("user", (ToolResult("c1", "2"), Text("go on")))],
        [Message("user", (Text("never mind"),))],
        [Message("user", (ToolResult("c1", "2"),)), Message("assistant", (Text("2"),)), *HELLO],
    ],
)
async def test_resolved_calls_of_the_history_do_not_run_again(after: list[Message]) -> None:
    """RUN-12, RUN-15: a call with a result does not run again."""
    helper, _ = agent(["ok"])
    events = await collect(helper, [*HELLO, Message("assistant", (call(n=1),)), *after])
    assert events[0] == STARTED


async def test_pending_input_ends_the_turn_after_the_results_are_taken() -> None:
    """RUN-06: the loop asks for pending input after the round's last result was taken, before the next request."""
    seen: list[AgentEvent] = []
    asked_after: list[AgentEvent] = []

    async def pending() -> bool:
        asked_after.append(seen[-1])
        return True

    helper, provider = agent([call(n=1), call(n=2, number=2)], ["never said"])
    async with aclosing(run(helper, HELLO, pending)) as events:
        async for event in events:
            seen.append(event)
    assert asked_after == [ToolReturned(ToolResult("c2", "4"))]
    assert seen[-1] == TurnFinished("pending")
    assert len(provider.requests) == 1


async def test_pending_input_is_not_asked_for_without_a_tool_round() -> None:
    """RUN-06: without a tool round, the loop does not ask for pending input, because the turn ends anyway."""

    async def pending() -> bool:
        raise AssertionError("asked")

    helper, _ = agent(["hi"])
    assert (await collect(helper, check_pending=pending))[-1] == TurnFinished("done")


async def test_turn_goes_on_when_nothing_is_pending() -> None:
    """Without queued messages the turn continues after a tool round (RUN-06)."""

    async def pending() -> bool:
        return False

    helper, provider = agent([call(n=1)], ["2"])
    assert (await collect(helper, check_pending=pending))[-1] == TurnFinished("done")
    assert len(provider.requests) == 2


async def test_refresh_decides_every_later_call() -> None:
    """RUN-16, ADM-02: each request has the model, prompt, tools and history of that time, not those of the turn's
    start."""
    helper, provider = agent([call(n=1)], ["fine"])
    other = ScriptedProvider([["from the other"]], name="other")
    edited = [Message("user", (Text("edited"),))]

    async def refresh() -> tuple[Agent, Sequence[Message]]:
        return replace(helper, provider=other, model="better", system="New.", context_window=9), edited

    events = await collect(helper, refresh=refresh)
    assert ResponseStarted("better", "other", 9) in events
    assert len(provider.requests) == 1
    assert other.requests == [
        Request("better", tuple(edited), "New.", provider.requests[0].tools),
    ]


async def test_refresh_is_not_asked_for_the_opening_call() -> None:
    async def refresh() -> tuple[Agent, Sequence[Message]]:
        raise AssertionError("asked")

    helper, _ = agent(["hi"])
    assert (await collect(helper, refresh=refresh))[-1] == TurnFinished("done")


async def test_round_limit_asks_for_a_summary_without_tools() -> None:
    """At the round limit the model is asked for a summary without tools (RUN-09)."""
    replies: list[Reply] = [[call(number=n, n=n)] for n in range(1, 3)]
    helper, provider = agent(*replies, ["In short."], max_rounds=2)
    events = await collect(helper)
    note = limit_note(2)
    assert RoundLimitReached(2, note) in events
    assert events[-1] == TurnFinished("limit")
    assert [request.tool_choice for request in provider.requests] == ["auto", "auto", "none"]
    assert provider.requests[2].messages[-1] == Message("system", (Text(note),))


async def test_round_limit_note_comes_from_the_refreshed_history() -> None:
    """RUN-09: with `refresh` the consumer has already stored the note, so it is not added twice."""
    helper, provider = agent([call(n=1)], ["In short."], max_rounds=1)
    stored = [*HELLO, Message("system", (Text("stored note"),))]

    async def refresh() -> tuple[Agent, Sequence[Message]]:
        return helper, stored

    await collect(helper, refresh=refresh)
    assert provider.requests[1].messages == tuple(stored)


async def test_calls_at_the_round_limit_are_answered_but_not_run() -> None:
    """RUN-09, CTX-03: calls of a model at the limit are not run, and get an error result."""
    helper, _ = agent([call(n=1)], [call(n=2, number=2)], max_rounds=1)
    events = await collect(helper)
    never_twice(events)
    assert events[-2:] == [ToolReturned(ToolResult("c2", NOT_RUN_LIMIT, is_error=True)), TurnFinished("limit")]


@pytest.mark.parametrize(
    ("steps", "error"),
    [
        ([Stop("max_tokens")], OutputLimitReached),
        ([Stop("context")], ContextTooLong),
        ([Stop("refusal")], AnswerRefused),
        ([HangUp()], ResponseBroken),
        ([ProviderError("gone")], ProviderError),
        ([ValueError("a bug")], ProviderError),
    ],
)
async def test_response_that_ends_badly_fails_the_turn_with_every_call_answered(
    steps: list[Any], error: type[ProviderError]
) -> None:
    """RUN-10, CTX-03: calls of a failed response do not run, and each has a result."""
    helper, provider = agent(["So", call(n=1), *steps])
    events = await collect(helper)
    never_twice(events)
    assert events[-2] == ToolReturned(ToolResult("c1", NOT_RUN_CUT, is_error=True))
    assert isinstance(events[-1], TurnFailed)
    assert type(events[-1].error) is error
    assert not any(isinstance(event, ToolStarted) for event in events)
    assert provider.streaming == 0


async def test_refusal_is_shown_with_the_providers_explanation() -> None:
    """RUN-10: the user reads why the model has declined to answer, if the provider says it, and what helps.

    A new message alone does not, because the declined message is sent again with it.
    """
    helper, _ = agent([Stop("refusal", "It could enable harm.")])
    failure = (await collect(helper))[-1]
    assert isinstance(failure, TurnFailed)
    assert str(failure.error.message).startswith("The model declined to answer.")
    assert "Edit that message, exclude it from context, or switch to another model." in str(failure.error.message)
    assert str(failure.error.message).endswith("The provider says: It could enable harm.")


async def test_unexpected_failure_is_reported_without_its_details(caplog: pytest.LogCaptureFixture) -> None:
    """RUN-10: the user reads a general message, and the log has the traceback."""
    helper, _ = agent([ValueError("sk-secret")])
    failure = (await collect(helper))[-1]
    assert isinstance(failure, TurnFailed)
    assert "sk-secret" not in str(failure.error)
    assert "sk-secret" in caplog.text


async def test_pause_asks_again_with_what_was_said() -> None:
    helper, provider = agent(["Searching…", Stop("pause")], ["Found."])
    assert (await collect(helper))[-1] == TurnFinished("done")
    assert provider.requests[1].messages == (*HELLO, Message("assistant", (Text("Searching…"),)))


async def test_endless_pauses_fail_the_turn() -> None:
    replies: list[Reply] = [["…", Stop("pause")] for _ in range(MAX_PAUSES + 1)]
    helper, provider = agent(*replies)
    assert isinstance((await collect(helper))[-1], TurnFailed)
    assert len(provider.requests) == MAX_PAUSES + 1


async def test_repeated_and_empty_call_ids_become_unique() -> None:
    """CTX-03: ids are unique within the response and the history, and results have the new ids."""
    helper, provider = agent(
        [ToolCall("c1", "double", {"n": 1}), ToolCall("c1", "double", {"n": 2}), ToolCall("", "double", {"n": 3})],
        [ToolCall("c1", "double", {"n": 4})],
        ["ok"],
    )
    events = await collect(helper)
    never_twice(events)
    assert [event.result for event in events if isinstance(event, ToolReturned)] == [
        ToolResult("c1", "2"),
        ToolResult("c1_2", "4"),
        ToolResult("call_2", "6"),
        ToolResult("c1_3", "8"),
    ]
    assert [call.id for call in provider.requests[2].messages[1].tool_calls] == ["c1", "c1_2", "call_2"]


class OddEnd(ScriptedProvider):
    """A provider that acts after the end of its response."""

    def __init__(self, after: Callable[[], Awaitable[object]]) -> None:
        super().__init__([])
        self.after = after
        self.ended = False

    async def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        yield ResponseDone("end", Usage())
        try:
            await self.after()
            yield TextDelta("late")
            self.ended = True
        except asyncio.CancelledError:
            self.ended = True
            raise


async def fail() -> None:
    raise OSError("gone")


@pytest.mark.parametrize("after", [lambda: asyncio.sleep(0), fail, lambda: asyncio.Event().wait()])
async def test_what_a_provider_does_after_its_answer_changes_nothing(
    after: Callable[[], Awaitable[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a complete answer, a provider may fail, hang or release its connection without an effect on it."""
    monkeypatch.setattr("agents.response.DRAIN_SECONDS", 0.01)
    provider = OddEnd(after)
    events = await collect(Agent("helper", "scripted", provider))
    assert events == [STARTED, ResponseDone("end", Usage()), TurnFinished("done")]
    assert provider.ended is (after is not fail)


async def test_failing_check_is_the_consumers_error() -> None:
    async def pending() -> bool:
        raise LookupError("database")

    helper, _ = agent([call(n=1)])
    with pytest.raises(LookupError):
        await asyncio.wait_for(collect(helper, check_pending=pending), 20)
