"""Messages that users send while the agent works."""

from __future__ import annotations

import asyncio
import random

import pytest

from agents.messages import ToolCall
from agents.providers.base import Request
from agents.providers.scripted import Gate, Reply
from chat.models import ChatMessage, SessionRun, User
from chat.queries.messages import page_before
from chat.services.messages.sending import edit_queued, withdraw
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode
from tests.support.workbench import Workbench, work

pytestmark = pytest.mark.both_databases


async def test_queued_messages_are_delivered_after_the_tool_round(node: TestNode, ana: User, bo: User) -> None:
    """RUN-06: queued messages of two users are delivered before the next request to the model, and no call loses its
    result."""
    bench = Workbench()
    provider = node.script([["Looking.", *work(1, 2)], ["Both, then."]], tools=[bench.tool])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await bench.begun(1, 2)
    assert (await node.send(session, bo, "One thing")).queued
    assert (await node.send(session, ana, "Another")).queued
    bench.let_go(1)
    await node.until(lambda: ChatMessage.objects.filter(session=session, result="did 1").exists())
    assert [message.text for message in (await node.do(page_before, session)).queued] == ["One thing", "Another"]
    bench.let_go(2)
    await node.idle(session)
    assert await node.shown(session) == [
        ("turn_start", "complete", ""),
        ("text", "complete", "Go"),
        ("text", "complete", "Looking."),
        ("tool_group", "complete", "did 1"),
        ("tool_group", "complete", "did 2"),
        ("turn_done", "complete", ""),
        ("turn_start", "complete", ""),
        ("text", "complete", "One thing"),
        ("text", "complete", "Another"),
        ("text", "complete", "Both, then."),
        ("turn_done", "complete", ""),
    ]
    assert [message.role for message in provider.requests[1].messages] == ["user", "assistant", "user", "user", "user"]
    assert [result.content for result in provider.requests[1].messages[2].tool_results] == ["did 1", "did 2"]
    assert [message.text for message in provider.requests[1].messages[3:]] == ["[Bo] One thing", "[Ana] Another"]
    await node.do(check_rest, session)


async def test_queued_message_never_interrupts_a_text(node: TestNode, ana: User) -> None:
    """RUN-06: an answer without tools is finished first, and then the queue begins a new turn."""
    gate = Gate()
    node.script([["One ", gate, "two."], ["Three."]])
    session = await node.session(ana)
    await node.send(session, ana, "Count")
    await gate.reached()
    await node.send(session, ana, "And on")
    gate.open()
    await node.idle(session)
    assert [text for kind, _, text in await node.shown(session) if kind == "text"] == [
        "Count",
        "One two.",
        "And on",
        "Three.",
    ]
    await node.do(check_rest, session)


async def test_queued_message_can_change_until_it_is_delivered(node: TestNode, ana: User, bo: User) -> None:
    """RUN-06: the model gets the edited text of a queued message, and nothing of a withdrawn one."""
    gate = Gate()
    provider = node.script([[gate, "Yes?"], ["Sure."]])
    session = await node.session(ana)
    await node.send(session, ana, "Hello")
    await gate.reached()
    first = await node.send(session, ana, "Frist")
    gone = await node.send(session, bo, "Never mind")
    await node.send(session, bo, "Last")
    await node.do(edit_queued, session=session, author=ana, message_id=first.id, text="First")
    await node.do(withdraw, session=session, author=bo, message_id=gone.id)
    gate.open()
    await node.idle(session)
    assert [message.text for message in provider.requests[1].messages] == [
        "[Ana] Hello",
        "Yes?",
        "[Ana] First",
        "[Bo] Last",
    ]
    await node.do(check_rest, session)


async def test_withdrawn_queue_lets_the_turn_go_on(node: TestNode, ana: User) -> None:
    """RUN-06: if the queue is withdrawn, the results of the round go back to the model in the same turn."""
    bench = Workbench()
    provider = node.script([work(1), ["Done."]], tools=[bench.tool])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await bench.begun(1)
    sent = await node.send(session, ana, "Wait")
    await node.do(withdraw, session=session, author=ana, message_id=sent.id)
    bench.let_go(1)
    await node.idle(session)
    assert [kind for kind, _, _ in await node.shown(session)] == [
        "turn_start",
        "text",
        "tool_group",
        "text",
        "turn_done",
    ]
    assert len(provider.requests) == 2


async def test_send_races_the_end_of_the_turn(node: TestNode, ana: User, bo: User) -> None:
    """RUN-01, RUN-06: a message sent at any moment is delivered once and answered; none stays queued in an idle
    session."""

    def reply(request: Request) -> Reply:
        return [ToolCall("c", "calculator", {"expression": "1+1"})] if random.random() < 0.3 else ["ok"]

    node.script(reply)
    sessions = [await node.session(ana) for _ in range(4)]

    async def talk(number: int, author: User) -> None:
        for count in range(8):
            await node.send(sessions[number], author, f"{author.display_name} {count}")
            await asyncio.sleep(random.random() * 0.01)

    await asyncio.gather(*(talk(number, author) for number in range(4) for author in (ana, bo)))
    await node.until(lambda: not SessionRun.objects.exclude(state="idle").exists())
    for session in sessions:
        messages = await node.do(check_rest, session)
        said = [message.text for message in messages if message.role == "user" and message.text]
        for name in ("Ana", "Bo"):
            assert [text for text in said if text.startswith(f"[{name}]")] == [f"[{name}] {name} {n}" for n in range(8)]
