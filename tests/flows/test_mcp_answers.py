"""What MCP clients get about the turn of a message."""

from __future__ import annotations

import json

import pytest

from agents.messages import Json
from agents.providers.scripted import Gate
from chat.api.waiting import Wait
from chat.errors import NoSuchMessage
from chat.live.turn_wait import TurnWait
from chat.mcp.caller import Caller
from chat.mcp.tools import TOOLS, Pending, turn_result
from chat.models import ApiToken, ChatMessage, Session, SessionRole, User
from chat.origin import Interface, Origin
from chat.services.runs import answering
from chat.services.sessions.lifecycle import configure
from tests.flows.test_delegation import QUESTION, TEAM, ask, begun, calls, child_of, play, waits
from tests.support.testing_node import TestNode


def caller_for(user: User) -> Caller:
    return Caller(ApiToken(user=user), Origin(Interface.API), "en", "http://localhost")


async def answer_now(session: Session, user: User, message_id: str) -> Json:
    """Return what the tool `read_answer` returns without waiting."""
    pending = Pending(session.pk, {"id": message_id}, 0, user.sender)
    wait = Wait(user, session.pk, pending.sent, 0, TurnWait(user, SessionRole.VIEWER, None, name=user.sender))
    [body] = [chunk async for chunk in wait.at_once()]
    return turn_result(caller_for(user), pending, {"turn_id": None, "sequence": None, **json.loads(body)})


async def first_message(node: TestNode, session: Session) -> str:
    return next(row.pk for row in await node.rows(session) if row.role == "user")


async def test_message_for_no_agent_says_how_to_get_an_answer(node: TestNode, ana: User) -> None:
    """RUN-17, RUN-01: a client does not call `read_answer` again for an answer that never comes."""
    node.script([])
    session = await node.session(ana)
    await node.do(configure, session=session, author=ana, replies="mentions")
    sent = await node.send(session, ana, "Hello, all")
    result = await answer_now(session, ana, sent.id)
    assert (result["outcome"], result["answer"], "@agent" in result["more"]) == ("completed", "", True)


async def test_task_of_another_agent_is_no_question(node: TestNode, ana: User) -> None:
    """RUN-18: while the other agent works, no user is asked; its own question is listed with the page to answer it."""
    gate = Gate()
    helper = {**TEAM["agents"]["helper"], "tools": ["confirmation"]}
    config = {**TEAM, "agents": {**TEAM["agents"], "helper": helper}}
    play(node, config, chief=[[ask()], ["Done"]], helper=[[gate, QUESTION], ["Found"]])
    session = await begun(node, ana)
    await gate.reached()
    await waits(node, session)
    child, message = await child_of(node, session), await first_message(node, session)
    result = await answer_now(session, ana, message)
    assert (result["outcome"], "people_are_asked" in result) == ("running", False)
    gate.open()
    await node.until(ChatMessage.objects.filter(session=session, subsession__waits="answer").exists)
    result = await answer_now(session, ana, message)
    page = f"http://localhost/sessions/{child.pk}/"
    task = {"kind": "answer", "tool": "agent__helper", "arguments": {"task": "Find it"}, "page": page}
    assert (result["outcome"], result["people_are_asked"]) == ("waiting", [task])
    [asked] = await calls(node, child)
    await node.do(answering.answer, session=child, author=ana, message_id=asked.pk, value={"confirmed": True})
    await node.idle(session)
    result = await answer_now(session, ana, message)
    assert (result["outcome"], result["answer"], "people_are_asked" in result) == ("completed", "Done", False)


async def test_message_that_does_not_exist_is_not_found(node: TestNode, ana: User) -> None:
    """MSG-02: an id of no message of the session is refused, because nothing was withdrawn."""
    session, other = await node.session(ana), await node.session(ana)
    node.script([["Hello"]])
    sent = await node.send(other, ana, "Hi")
    await node.idle(other)
    tool = TOOLS["read_answer"]
    for message in ("m_none", sent.id):
        given = tool.arguments.model_validate({"session": session.pk, "message": message, "wait": 0})
        with pytest.raises(NoSuchMessage):
            await node.do(tool.run, caller_for(ana), given)
