"""Answering again, running tools again, and the way back, with a running agent."""

from __future__ import annotations

import pytest

from agents.providers.scripted import Gate
from chat.models import ChatMessage, User
from chat.services.runs.attempts import restore_attempt
from chat.services.runs.control import retry_here, run_tools
from tests.support.house import House
from tests.support.rest import check_rest
from tests.support.workbench import Workbench, work

pytestmark = pytest.mark.both_databases


async def test_tools_run_again(house: House, ana: User) -> None:
    """RUN-12: the model is not asked first; it goes on from the new results, and the old ones can be had back."""
    bench = Workbench()
    provider = house.script([["Look", *work(1, 2)], ["So."], ["Then."]], tools=[bench.tool])
    bench.let_go(1, 2)
    session = await house.session(ana)
    await house.send(session, ana, "Go")
    await house.idle(session)
    before = [row.pk for row in await house.rows(session)]
    call = await house.do(ChatMessage.objects.get, session=session, tool_call_id="w2")
    done = await house.do(run_tools, session=session, author=ana, message_id=call.pk, at_most=0)
    await house.idle(session)
    assert sorted(bench.did) == [1, 1, 2, 2]
    assert [text for _kind, _status, text in await house.shown(session)] == [
        "",
        "Go",
        "Look",
        "did 1",
        "did 2",
        "Then.",
        "",
    ]
    assert [result.content for result in provider.requests[-1].messages[-1].tool_results] == ["did 1", "did 2"]
    await house.do(check_rest, session)
    await house.do(restore_attempt, session=session, author=ana, attempt=done.attempt)
    assert [row.pk for row in await house.rows(session)] == before
    await house.do(check_rest, session)


async def test_retry_is_taken_back_while_the_agent_answers(house: House, ana: User, bo: User) -> None:
    """RUN-12, RUN-06: after a stop all is as it was; what a user queued in the meantime waits; the next turn works."""
    gate = Gate()
    house.script([["One."], ["Two."], ["Otherwise", gate], ["Three."]])
    session = await house.session(ana)
    for text in ("First", "Second"):
        await house.send(session, ana, text)
        await house.idle(session)
    before = await house.rows(session)
    done = await house.do(retry_here, session=session, author=ana, message_id=before[1].pk, at_most=3)
    await gate.reached()
    waiting = await house.send(session, bo, "Wait")
    await house.cancel(session, ana)
    await house.idle(session)
    await house.do(restore_attempt, session=session, author=ana, attempt=done.attempt, at_most=0)
    now = await house.rows(session)
    assert [row.pk for row in now] == [*(row.pk for row in before), waiting.id]
    assert now[-1].held
    await house.do(check_rest, session)
    await house.send(session, ana, "Third")
    await house.idle(session)
    assert [text for kind, _, text in await house.shown(session) if kind == "text"][-3:] == ["Third", "Three.", "Wait"]
