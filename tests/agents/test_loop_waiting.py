"""UI-12: the loop's events for calls that users answer or approve."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

from agents.approval import Rules
from agents.events import AgentEvent, ToolReturned, ToolStarted, ToolWaiting, TurnFinished
from agents.loop import NOT_RUN_DENIED, NOT_RUN_UNATTENDED, Agent, run
from agents.messages import Message, Text, ToolCall, ToolResult
from agents.providers.scripted import Reply, ScriptedProvider
from agents.toolbox.widgets import WIDGET_TOOLS
from agents.tools import tool

HELLO = Message("user", (Text("hello"),))
ASK = ToolCall("c1", "confirmation", {"question": "Sure?"})
SEND = ToolCall("c2", "send", {"to": "Bo"})
LOOK = ToolCall("c3", "look", {})


@tool(approval=True)
async def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


@tool()
async def look() -> str:
    """Look around."""
    return "nothing"


def agent(*replies: Reply, rules: Rules = Rules()) -> tuple[Agent, ScriptedProvider]:  # noqa: B008  # frozen
    provider = ScriptedProvider(replies)
    return Agent("helper", "scripted", provider, tools=(send, look, *WIDGET_TOOLS), rules=rules), provider


async def tools_of(agent: Agent, history: Sequence[Message] = (HELLO,)) -> list[AgentEvent]:
    """Return the events of tools, and the last event."""
    async with aclosing(run(agent, history)) as events:
        kinds = (ToolStarted, ToolWaiting, ToolReturned, TurnFinished)
        return [event async for event in events if isinstance(event, kinds)]


async def test_others_run_and_the_turn_ends_as_waiting() -> None:
    helper, provider = agent([ASK, SEND, LOOK])
    assert await tools_of(helper) == [
        ToolWaiting(ASK, "confirmation"),
        ToolWaiting(SEND, "approval"),
        ToolStarted(LOOK),
        ToolReturned(ToolResult("c3", "nothing")),
        TurnFinished("waiting"),
    ]
    assert len(provider.requests) == 1


async def test_turn_continues_with_approved_calls_and_asks_again_about_the_others() -> None:
    """RUN-12: approved calls of the history run and the others wait again, without a request to the model."""
    helper, provider = agent(["Done."])
    said = Message("assistant", (ASK, replace(SEND, approved=True)))
    assert await tools_of(helper, (HELLO, said)) == [
        ToolWaiting(ASK, "confirmation"),
        ToolStarted(replace(SEND, approved=True)),
        ToolReturned(ToolResult("c2", "sent to Bo")),
        TurnFinished("waiting"),
    ]
    assert provider.requests == []


async def test_rules_of_the_agent_decide() -> None:
    helper, _provider = agent([SEND, LOOK], ["Done."], rules=Rules(allow=("send(Bo)",), deny=("look",)))
    assert await tools_of(helper) == [
        ToolReturned(ToolResult("c3", NOT_RUN_DENIED, True)),
        ToolStarted(SEND),
        ToolReturned(ToolResult("c2", "sent to Bo")),
        TurnFinished("done"),
    ]


async def test_nothing_waits_for_people_in_an_unattended_run() -> None:
    """MSG-09: in an unattended run the model reads that no one can answer, and a rule that allows a call applies."""
    helper, provider = agent([ASK, SEND], [SEND], ["Done."])
    assert await tools_of(replace(helper, unattended=True)) == [
        ToolReturned(ToolResult("c1", NOT_RUN_UNATTENDED, True)),
        ToolReturned(ToolResult("c2", NOT_RUN_UNATTENDED, True)),
        ToolReturned(ToolResult("c2_2", NOT_RUN_UNATTENDED, True)),
        TurnFinished("done"),
    ]
    assert len(provider.requests) == 3
    allowed, _provider = agent([SEND], ["Done."], rules=Rules(allow=("send(Bo)",)))
    assert ToolStarted(SEND) in await tools_of(replace(allowed, unattended=True))


async def test_people_are_not_asked_about_invalid_calls() -> None:
    """The model reads the error of an invalid call and can repeat the call."""
    helper, provider = agent([ToolCall("c1", "confirmation", {}), ToolCall("c2", "send", {"from": "Bo"})], ["Oh."])
    first, second, end = await tools_of(helper)
    assert isinstance(first, ToolReturned)
    assert isinstance(second, ToolReturned)
    assert "question: Field required" in first.result.content
    assert "to: Field required" in second.result.content
    assert (end, len(provider.requests)) == (TurnFinished("done"), 2)


async def test_new_message_comes_before_the_question() -> None:
    """RUN-06: if a message is pending at the end of the round, the turn ends for it instead of waiting for an
    answer."""

    async def is_pending() -> bool:
        return True

    helper, _provider = agent([ASK])
    async with aclosing(run(helper, [HELLO], is_pending)) as events:
        assert [event async for event in events][-1] == TurnFinished("pending")
