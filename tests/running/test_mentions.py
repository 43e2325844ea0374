"""RUN-17: messages that are not for the agent: users talk to each other, and the agent reads them when it is
mentioned."""

from __future__ import annotations

import asyncio
import functools

import pytest

from agents.messages import ToolCall
from agents.tools import tool
from chat.errors import ServiceError
from chat.models import RunState, Session, SessionRun, User
from chat.services.messages import editing
from chat.services.runs import control
from chat.services.sessions import lifecycle
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode, let_in, person


async def quiet_session(node: TestNode, ana: User) -> Session:
    """Return a session whose agent answers only messages that mention it."""
    session = await node.session(ana)
    await node.do(lifecycle.configure, session=session, author=ana, replies="mentions")
    return session


async def test_agent_answers_messages_that_mention_it_and_reads_the_others(node: TestNode, ana: User) -> None:
    node.script([["Noon."]])
    session = await quiet_session(node, ana)
    bo = await node.do(person, "Bo", session.workspace)
    await node.do(let_in, session, bo, "editor")
    first = await node.send(session, ana, "When is lunch?")
    assert (first.queued, first.turn_id, first.sequence) == (False, "", 1)
    await node.send(session, bo, "No idea.")
    run = await node.do(SessionRun.objects.get, pk=session.pk)
    assert (run.state, run.wanted) == (RunState.IDLE, run.done)
    asked = await node.send(session, ana, "@Agent, when is lunch?")
    assert asked.turn_id
    await node.idle(session)
    (request,) = node.provider.requests
    assert [message.text for message in request.messages] == [
        "[Ana] When is lunch?",
        "[Bo] No idea.",
        "[Ana] @Agent, when is lunch?",
    ]
    await node.do(check_rest, session)


async def test_agent_answers_talk_when_a_person_asks_it_to(node: TestNode, ana: User) -> None:
    """RUN-12, RUN-17: a turn that follows the last text withdraws nothing, and its answer can be retried."""
    node.script([["Noon."], ["At one."]])
    session = await quiet_session(node, ana)
    await node.send(session, ana, "Lunch?")
    last = await node.send(session, ana, "When?")
    retry = functools.partial(control.retry, session=session, author=ana, message_id=last.id)
    found = await node.do(retry, preview=True)
    assert (found.messages, found.last_answer) == (0, True)
    assert not node.provider.requests
    await node.do(retry, at_most=0)
    await node.idle(session)
    await node.do(retry, at_most=0)
    await node.idle(session)
    assert [request.messages[-1].text for request in node.provider.requests] == ["When?", "When?"]
    shown = [text for _kind, _status, text in await node.shown(session) if text]
    assert shown == ["Lunch?", "When?", "At one."]
    await node.do(check_rest, session)


async def test_talk_that_is_not_in_the_context_is_not_answered(node: TestNode, ana: User) -> None:
    session = await quiet_session(node, ana)
    sent = await node.send(session, ana, "Lunch?")
    await node.do(editing.set_included, session=session, author=ana, message_id=sent.id, included=False)
    with pytest.raises(ServiceError, match="Include it first"):
        await node.do(control.retry, session=session, author=ana, message_id=sent.id)


async def test_talk_during_a_turn_waits_for_its_end_without_a_new_one(node: TestNode, ana: User) -> None:
    """A message between users does not interrupt a tool round. It is delivered after the turn and starts no other
    one."""
    gate, began = asyncio.Event(), asyncio.Event()

    @tool()
    async def work() -> str:
        """Work until the test says so."""
        began.set()
        await gate.wait()
        return "worked"

    node.script([[ToolCall("w1", "work", {})], ["Done."]], tools=[work])
    session = await quiet_session(node, ana)
    await node.send(session, ana, "@agent go")
    await asyncio.wait_for(began.wait(), 20)
    sent = await node.send(session, ana, "How long does it take?")
    assert sent.queued
    gate.set()
    await node.idle(session)
    shown = await node.shown(session)
    assert [text for _kind, _status, text in shown][-3:] == ["Done.", "", "How long does it take?"]
    assert len(node.provider.requests) == 2
    await node.do(check_rest, session)


async def test_stop_does_not_hold_messages_that_are_not_for_the_agent(node: TestNode, ana: User) -> None:
    began = asyncio.Event()

    @tool()
    async def work() -> str:
        """Work until it is stopped."""
        began.set()
        await asyncio.Event().wait()
        return ""

    node.script([[ToolCall("w1", "work", {})]], tools=[work])
    session = await quiet_session(node, ana)
    await node.send(session, ana, "@agent go")
    await asyncio.wait_for(began.wait(), 20)
    await node.send(session, ana, "Enough.")
    await node.send(session, ana, "@agent something else")
    assert await node.do(control.cancel, session=session, author=ana)
    await node.idle(session)
    rows = await node.rows(session)
    assert [(row.text, row.status, row.held) for row in rows][-2:] == [
        ("Enough.", "complete", False),
        ("@agent something else", "queued", True),
    ]
    await node.do(check_rest, session)


async def test_talk_beside_a_question_does_not_end_the_wait(node: TestNode, ana: User) -> None:
    """UI-12: users may talk about a question before they answer it."""
    config = {
        "providers": {"scripted": {"type": "demo", "models": {"one": {}}}},
        "agents": {"agent": {"model": "scripted/one", "tools": ["confirmation"]}},
    }
    node.script([[ToolCall("c1", "confirmation", {"question": "Sure?"})]], config)
    session = await quiet_session(node, ana)
    await node.send(session, ana, "@agent go")
    await node.until(lambda: SessionRun.objects.get(pk=session.pk).state == RunState.WAITING)
    await node.send(session, ana, "Hm, what do you think?")
    assert (await node.do(SessionRun.objects.get, pk=session.pk)).state == RunState.WAITING
