"""Retries of answers and of tools, and their undo, with a running agent."""

from __future__ import annotations

import pytest

from agents.providers.scripted import Gate, Stop
from chat.errors import ServiceError
from chat.models import ChatMessage, User
from chat.runs.turn_rows import CONTINUE_NOTE
from chat.services.runs.attempts import restore_attempt
from chat.services.runs.control import continue_answer, retry, run_tools
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode
from tests.support.workbench import Workbench, work

pytestmark = pytest.mark.both_databases


async def test_tools_run_again(node: TestNode, ana: User) -> None:
    """RUN-12: the tools run without a request first, the model continues from the new results, and the old ones can be
    restored."""
    bench = Workbench()
    provider = node.script([["Look", *work(1, 2)], ["So."], ["Then."]], tools=[bench.tool])
    bench.let_go(1, 2)
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await node.idle(session)
    before = [row.pk for row in await node.rows(session)]
    call = await node.do(ChatMessage.objects.get, session=session, tool_call_id="w2")
    done = await node.do(run_tools, session=session, author=ana, message_id=call.pk, at_most=0)
    await node.idle(session)
    assert sorted(bench.did) == [1, 1, 2, 2]
    assert [text for _kind, _status, text in await node.shown(session)] == [
        "",
        "Go",
        "Look",
        "did 1",
        "did 2",
        "Then.",
        "",
    ]
    assert [result.content for result in provider.requests[-1].messages[-1].tool_results] == ["did 1", "did 2"]
    await node.do(check_rest, session)
    await node.do(restore_attempt, session=session, author=ana, attempt=done.attempt)
    assert [row.pk for row in await node.rows(session)] == before
    await node.do(check_rest, session)


async def test_retry_is_taken_back_while_the_agent_answers(node: TestNode, ana: User, bo: User) -> None:
    """RUN-12, RUN-06: after a stop, the earlier answer can be restored.
    Messages queued in the meantime are held, and the next turn works.
    """
    gate = Gate()
    node.script([["One."], ["Two."], ["Otherwise", gate], ["Three."]])
    session = await node.session(ana)
    for text in ("First", "Second"):
        await node.send(session, ana, text)
        await node.idle(session)
    before = await node.rows(session)
    done = await node.do(retry, session=session, author=ana, message_id=before[1].pk, at_most=3)
    await gate.reached()
    waiting = await node.send(session, bo, "Wait")
    await node.cancel(session, ana)
    await node.idle(session)
    await node.do(restore_attempt, session=session, author=ana, attempt=done.attempt, at_most=0)
    now = await node.rows(session)
    assert [row.pk for row in now] == [*(row.pk for row in before), waiting.id]
    assert now[-1].held
    await node.do(check_rest, session)
    await node.send(session, ana, "Third")
    await node.idle(session)
    assert [text for kind, _, text in await node.shown(session) if kind == "text"][-3:] == ["Third", "Three.", "Wait"]


async def test_cut_answer_goes_on_from_its_text(node: TestNode, ana: User, bo: User) -> None:
    """RUN-12: after a stop and at the output limit, the model gets a note to continue, and users see who requested
    it."""
    gate = Gate()
    provider = node.script([["One, ", gate], ["two, ", Stop("max_tokens")], ["three."]])
    session = await node.session(ana)
    await node.send(session, ana, "Count")
    await gate.reached()
    await node.cancel(session, ana)
    await node.idle(session)
    turn = await node.do(continue_answer, session=session, author=bo)
    await node.idle(session)
    assert [row.type for row in await node.rows(session)][-2:] == ["error", "turn_done"]
    assert await node.do(continue_answer, session=session, author=ana) == turn
    await node.idle(session)
    said = [(row.role, row.text) for row in await node.rows(session) if row.type == "text"]
    note = ("system", CONTINUE_NOTE)
    assert said == [
        ("user", "Count"),
        ("assistant", "One, "),
        note,
        ("assistant", "two, "),
        note,
        ("assistant", "three."),
    ]
    assert [message.role for message in provider.requests[-1].messages] == ["user", *["assistant", "system"] * 2]
    assert provider.requests[-1].messages[-2].text.startswith("two, ")
    await node.do(check_rest, session)
    with pytest.raises(ServiceError, match="no unfinished answer"):
        await node.do(continue_answer, session=session, author=ana)
