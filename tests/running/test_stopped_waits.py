"""Stop while some calls of a response wait or have just been answered, and others still run."""

from __future__ import annotations

from typing import Any

from agents.messages import ToolCall
from agents.providers.scripted import Reply
from chat.models import ChatMessage, Session, User
from chat.projections.context import NOT_ANSWERED, TOOL_INTERRUPTED
from chat.services.runs import answering
from tests.flows.test_delegation import TEAM, ask
from tests.running.test_waiting import ASK, CONFIG, deploy_call, deploying
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode
from tests.support.workbench import Workbench, work

CUT = ("interrupted", TOOL_INTERRUPTED)


async def begun(node: TestNode, ana: User, call: ToolCall, bench: Workbench, **more: Any) -> tuple[Session, Any]:
    """Begin a turn in which a call waits beside a call that runs. Return the session and the waiting row."""
    node.script([[call, *work(1)]], **more)
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    asked = ChatMessage.objects.filter(session=session, status="waiting")
    await node.until(asked.exists)
    await bench.begun(1)
    return session, await node.do(asked.get)


async def outcomes(node: TestNode, session: Session, ana: User) -> list[tuple[str, str]]:
    """Stop the turn. Return how its calls ended."""
    assert await node.cancel(session, ana)
    await node.idle(session)
    await node.do(check_rest, session)
    return [(row.status, row.result) for row in await node.rows(session) if row.type == "tool_group"]


async def test_stop_keeps_an_answer(node: TestNode, ana: User) -> None:
    """RUN-08, UI-12: what a user has answered stays the result, so that the model reads it in the next turn."""
    bench = Workbench()
    session, row = await begun(node, ana, ASK, bench, config=CONFIG, tools=[bench.tool])
    await node.do(answering.answer, session=session, author=ana, message_id=row.pk, value={"confirmed": True})
    assert await outcomes(node, session, ana) == [("complete", '{"confirmed": true}'), CUT]


async def test_stop_keeps_the_answer_of_another_agent(node: TestNode, ana: User) -> None:
    """RUN-08, RUN-18: the answer of an agent that has ended stays the result."""
    bench = Workbench()
    replies: dict[str, Reply] = {"Chief": [ask("Find the key"), *work(1)], "Helper": ["The key is red."]}
    node.script(lambda request: replies[request.system.split("\n")[0]], TEAM, [bench.tool])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await node.until(ChatMessage.objects.filter(session=session, result="The key is red.").exists)
    await bench.begun(1)
    assert await outcomes(node, session, ana) == [("complete", "The key is red."), CUT]


async def test_stop_interrupts_an_approved_call(node: TestNode, ana: User) -> None:
    """RUN-08, UI-12: a call that a user has approved, but that has not run, was interrupted, not left unanswered."""
    bench, ran = Workbench(), list[str]()
    session, row = await begun(node, ana, deploy_call(), bench, config=CONFIG, tools=[bench.tool, deploying(ran)])
    decision = {"approved": True, "scope": "once", "comment": ""}
    await node.do(answering.answer, session=session, author=ana, message_id=row.pk, value=decision)
    assert await outcomes(node, session, ana) == [CUT, CUT]
    assert ran == []


async def test_stop_reports_an_open_question(node: TestNode, ana: User) -> None:
    """RUN-08, UI-12: the model learns that no one answered, and which call was interrupted."""
    bench = Workbench()
    session, _row = await begun(node, ana, ASK, bench, config=CONFIG, tools=[bench.tool])
    assert await outcomes(node, session, ana) == [("interrupted", NOT_ANSWERED), CUT]
