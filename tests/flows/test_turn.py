"""A turn from send to rest, through the real services, runner, writer and loop."""

from __future__ import annotations

import pytest

from agents.events import ReasoningDelta, Usage
from agents.messages import ToolCall
from agents.providers.scripted import Gate
from chat.models import User
from tests.support.testing_node import TestNode

pytestmark = pytest.mark.both_databases


async def test_send_runs_a_turn_and_keeps_it_as_rows(node: TestNode, ana: User) -> None:
    """RUN-01, MSG-03: a turn has a marker, the user's text, the answer and a marker, in an order without gaps."""
    node.script([["Hel", "lo", Usage(10, 5)]])
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await node.idle(session)
    rows = await node.rows(session)
    assert [(row.sequence, row.type, row.status, row.text) for row in rows] == [
        (1, "turn_start", "complete", ""),
        (2, "text", "complete", "Hi"),
        (3, "text", "complete", "Hello"),
        (4, "turn_done", "complete", ""),
    ]
    assert len({row.turn_id for row in rows}) == 1
    assert (rows[2].input_tokens, rows[2].output_tokens, rows[2].total_tokens) == (10, 5, 15)


@pytest.mark.parametrize("usage", [Usage("12", None), Usage(-5, 3.5), Usage(True, [1], {}, "")])  # type: ignore[arg-type]
async def test_counts_that_are_no_numbers_do_not_end_a_turn(node: TestNode, ana: User, usage: Usage) -> None:
    """MSG-06, MSG-10: a server that reports its tokens as texts or negative numbers is a server without usage."""
    node.script([["Hello", usage]])
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await node.idle(session)
    assert (await node.shown(session))[2:] == [("text", "complete", "Hello"), ("turn_done", "complete", "")]
    [answer] = [row for row in await node.rows(session) if row.role == "assistant"]
    assert (answer.input_tokens, answer.output_tokens, answer.total_tokens) == (None, None, None)


async def test_next_request_has_the_calls_and_results_of_the_tool_round(node: TestNode, ana: User) -> None:
    """CTX-01, MSG-07, MSG-08: the text and the calls of a response stay together, and the results follow."""
    provider = node.script(
        [
            [
                ReasoningDelta("hm"),
                "Let me see.",
                ToolCall("c1", "calculator", {"expression": "1+1"}, '{"expression":"1+1"}'),
                ToolCall("c2", "calculator", {"expression": "2*3"}, '{"expression": "2*3"}'),
            ],
            ["Done."],
        ]
    )
    session = await node.session(ana)
    await node.send(session, ana, "Sums!")
    await node.idle(session)
    assert await node.shown(session) == [
        ("turn_start", "complete", ""),
        ("text", "complete", "Sums!"),
        ("reasoning", "complete", "hm"),
        ("text", "complete", "Let me see."),
        ("tool_group", "complete", "2"),
        ("tool_group", "complete", "6"),
        ("text", "complete", "Done."),
        ("turn_done", "complete", ""),
    ]
    second = provider.requests[1].messages
    assert [message.role for message in second] == ["user", "assistant", "user"]
    assert [call.raw for call in second[1].tool_calls] == ['{"expression":"1+1"}', '{"expression": "2*3"}']
    assert [result.content for result in second[2].tool_results] == ["2", "6"]


async def test_stop_keeps_what_was_said(node: TestNode, ana: User) -> None:
    """RUN-07, RUN-08: a stop in mid-text keeps the text and closes the turn, and the next message works."""
    gate = Gate()
    provider = node.script([["Once upon ", "a time", gate, "never"], ["Fine."]])
    session = await node.session(ana)
    await node.send(session, ana, "Tell")
    await gate.reached()
    assert await node.cancel(session, ana)
    await node.idle(session)
    assert await node.shown(session) == [
        ("turn_start", "complete", ""),
        ("text", "complete", "Tell"),
        ("text", "interrupted", "Once upon a time"),
        ("turn_done", "interrupted", ""),
    ]
    await node.send(session, ana, "Go on")
    await node.idle(session)
    assert provider.requests[1].messages[1].text == "Once upon a time\n\n[interrupted]"
    assert (await node.shown(session))[-2] == ("text", "complete", "Fine.")
