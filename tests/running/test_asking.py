"""UI-18: tool calls that ask a question while they run: who answers, and what else can happen while the call waits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from agents.elicitation import Elicitation, form_of
from agents.messages import ToolCall, ToolResult
from agents.tools import Tool, ToolContext, tool
from chat.errors import Invalid, ServiceError
from chat.models import ChatMessage, RunState, Session, SessionRun, User
from chat.projections.context import TOOL_INTERRUPTED
from chat.queries.messages import session_snapshot
from chat.queries.session_list import recent
from chat.queries.turn_outcomes import Outcome, outcome_of
from chat.runner import bridge, runtime
from chat.services.batches import Deadline
from chat.services.deletion.names import erase_names
from chat.services.runs import answering, asking, control
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode, let_in, person

SCHEMA = {
    "properties": {"people": {"type": "integer", "minimum": 1, "title": "How many people"}},
    "required": ["people"],
}
CALL = ToolCall("b1", "book", {})
FOUR = {"action": "accept", "content": {"people": 4}}


def booking(*, seconds: float = 900, times: int = 1, heard: list[Any] | None = None) -> Tool:
    """Return a tool that asks `times` questions and returns the answers."""

    @tool(time_limit=20)
    async def book(context: ToolContext) -> str:
        """Book a table."""
        answers = heard if heard is not None else []
        question: Elicitation = form_of("inn", "When do you come?", SCHEMA)
        for _ in range(times):
            answers.append(await context.ask(question, seconds) if context.ask else "no one")
        return json.dumps(answers)

    return book


async def asked(node: TestNode, session: Session, number: int = 1) -> ChatMessage:
    """Wait until a call asks its question; return the call."""

    def is_asking() -> bool:
        rows = ChatMessage.objects.filter(session=session, status="waiting")
        return any(len(row.asked or ()) == number for row in rows)

    await node.until(is_asking)
    (row,) = [row for row in await node.rows(session) if row.status == "waiting"]
    return row


async def answer(node: TestNode, session: Session, author: User, row: ChatMessage, value: Any) -> None:
    await node.do(answering.answer, session=session, author=author, message_id=row.pk, value=value)


async def begun(node: TestNode, ana: User, *tools: Tool) -> Session:
    node.script([[CALL], ["Done."]], tools=tools)
    session = await node.session(ana)
    await node.send(session, ana, "Book a table")
    return session


async def the_call(node: TestNode, session: Session) -> ChatMessage:
    (row,) = [row for row in await node.rows(session) if row.type == "tool_group"]
    return row


def records(row: ChatMessage) -> list[Any]:
    """Return what a call has asked so far."""
    return row.asked or []


async def test_answer_goes_to_the_running_call(node: TestNode, ana: User) -> None:
    """UI-18: the call stays in its process while it waits, all viewers see that it waits for users, and the row records
    each answer with its user."""
    session = await begun(node, ana, booking())
    row = await asked(node, session)
    run = await node.do(SessionRun.objects.get, pk=session.pk)
    assert (run.state, run.owner_id) == (RunState.RUNNING, runtime.worker_id())
    assert (await node.do(session_snapshot, session)).agent_status == "waiting"
    (snapshot,) = [each for each in (await node.snapshot(session)).messages if each.tool]
    assert snapshot.tool is not None
    assert (snapshot.tool.question, snapshot.tool.asked[0]["question"]["server"]) == ("elicitation", "inn")
    (listed,) = await node.do(recent, ana, 5)
    assert (listed.waiting, listed.working) == (True, False)
    await answer(node, session, ana, row, FOUR)
    await node.idle(session)
    assert node.provider.requests[-1].messages[-1].tool_results == (ToolResult("b1", json.dumps([FOUR])),)
    row = await the_call(node, session)
    (record,) = records(row)
    assert (row.status, record["answer"], record["answered_by"], record["answered_by_id"]) == (
        "complete",
        FOUR,
        "Ana",
        ana.pk,
    )
    await node.do(check_rest, session)


async def test_waiting_request_of_a_client_ends_when_people_are_asked(node: TestNode, ana: User) -> None:
    """UI-18: REST and MCP clients receive a response that says that a person has to answer."""
    node.script([[CALL], ["Done."]], tools=[booking()])
    session = await node.session(ana)
    sent = await node.send(session, ana, "Book a table")
    row = await asked(node, session)
    assert (await node.do(outcome_of, ana, session.pk, sent.id)).outcome is Outcome.WAITING
    await answer(node, session, ana, row, {"action": "decline"})
    await node.idle(session)
    assert (await node.do(outcome_of, ana, session.pk, sent.id)).outcome is Outcome.COMPLETED


async def test_first_answer_counts(node: TestNode, ana: User) -> None:
    """UI-18: a second answer is refused with the name of the user who answered first; an answer to an earlier question
    is refused."""
    session = await begun(node, ana, booking(times=2))
    bo = await node.do(person, "Bo")
    await node.do(let_in, session, bo, "editor")
    row = await asked(node, session)
    with pytest.raises(Invalid, match="at least 1"):
        await answer(node, session, ana, row, {"action": "accept", "content": {"people": 0}})
    await answer(node, session, bo, row, {**FOUR, "number": 1})
    row = await asked(node, session, 2)
    with pytest.raises(ServiceError, match="Bo has already answered") as refused:
        await answer(node, session, ana, row, {"action": "decline", "number": 1})
    assert refused.value.code == "already_answered"
    await answer(node, session, ana, row, {"action": "decline", "number": 2})
    await node.idle(session)
    row = await the_call(node, session)
    assert json.loads(row.result) == [FOUR, {"action": "decline"}]
    assert [each["answered_by"] for each in records(row)] == ["Bo", "Ana"]
    with pytest.raises(ServiceError, match="Ana has already answered"):
        await answer(node, session, bo, row, FOUR)


async def test_answer_is_found_without_a_wakeup(node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-18: without a wakeup, the answer is found because the worker polls the rows."""
    monkeypatch.setattr(bridge, "ANSWER_POLL", 0.01)
    monkeypatch.setattr(asking, "send", lambda wakeup: None)
    session = await begun(node, ana, booking())
    await answer(node, session, ana, await asked(node, session), FOUR)
    await node.idle(session)
    assert (await the_call(node, session)).status == "complete"


async def test_message_skips_the_question(node: TestNode, ana: User) -> None:
    """UI-18, RUN-06: the tool gets "cancel", the turn ends with its call, and the next turn answers the message."""
    session = await begun(node, ana, booking())
    await asked(node, session)
    await node.send(session, ana, "Never mind")
    await node.idle(session)
    row = await the_call(node, session)
    assert (row.result, records(row)[0]["withdrawn"]) == ('[{"action": "cancel"}]', "skipped")
    shown = [text for kind, _status, text in await node.shown(session) if kind == "text"]
    assert shown == ["Book a table", "Never mind", "Done."]
    with pytest.raises(ServiceError, match="no longer waits"):
        await answer(node, session, ana, row, FOUR)
    await node.do(check_rest, session)


async def test_stop_ends_the_wait(node: TestNode, ana: User) -> None:
    """UI-18, RUN-08: Stop interrupts the call, and its question can no longer be answered."""
    session = await begun(node, ana, booking())
    row = await asked(node, session)
    assert await node.cancel(session, ana)
    await node.idle(session)
    stopped = await the_call(node, session)
    assert (stopped.status, stopped.result) == ("interrupted", TOOL_INTERRUPTED)
    with pytest.raises(ServiceError, match="no longer waits"):
        await answer(node, session, ana, row, FOUR)
    await node.do(check_rest, session)


async def test_process_that_stops_withdraws_the_question(node: TestNode, ana: User, settings: Settings) -> None:
    """UI-18: the tool gets "cancel" and can finish its call; the turn continues in the next process."""
    settings.GRACE_SECONDS = 20
    session = await begun(node, ana, booking())
    await asked(node, session)
    await runtime.drain()
    await node.restart()
    await node.idle(session)
    row = await the_call(node, session)
    assert (row.status, row.result) == ("complete", '[{"action": "cancel"}]')
    assert records(row)[0]["withdrawn"] == "leaving"
    assert [text for _kind, _status, text in await node.shown(session)][-2] == "Done."
    await node.do(check_rest, session)


async def test_question_that_no_one_answers_expires(node: TestNode, ana: User) -> None:
    """UI-18: when the time is over, the tool gets "cancel" and the call ends. The row records that the question
    expired."""
    session = await begun(node, ana, booking(seconds=0.05))
    await node.idle(session)
    row = await the_call(node, session)
    assert (row.result, records(row)[0]["withdrawn"]) == ('[{"action": "cancel"}]', "expired")


async def test_call_can_ask_only_so_much(node: TestNode, ana: User) -> None:
    """UI-18: the eleventh question of a call is cancelled without being shown."""
    session = await begun(node, ana, booking(times=11))
    for number in range(1, 11):
        await answer(node, session, ana, await asked(node, session, number), {"action": "decline"})
    await node.idle(session)
    row = await the_call(node, session)
    assert len(records(row)) == 10
    assert json.loads(row.result)[-1] == {"action": "cancel"}


async def test_tool_in_a_session_in_the_mode_run_cannot_ask_questions(node: TestNode, ana: User) -> None:
    """MSG-09: in a session in the mode `run`, a tool cannot ask questions, so nothing waits."""
    node.script([[CALL], ["Done."]], tools=[booking()])
    session = await node.session(ana)
    await node.do(Session.objects.filter(pk=session.pk).update, mode=Session.Mode.RUN)
    await node.send(session, ana, "Book a table")
    await node.idle(session)
    row = await the_call(node, session)
    assert (row.result, row.asked) == ('["no one"]', None)


async def test_retried_tools_ask_again(node: TestNode, ana: User) -> None:
    """UI-18, RUN-12: a retry asks again, and the earlier answer stays with the earlier attempt."""
    session = await begun(node, ana, booking())
    await answer(node, session, ana, await asked(node, session), FOUR)
    await node.idle(session)
    node.script([["Again."]], tools=[booking()])
    row = await the_call(node, session)
    await node.do(control.run_tools, session=session, author=ana, message_id=row.pk)
    row = await asked(node, session)
    assert len(records(row)) == 1
    await answer(node, session, ana, row, {"action": "cancel"})
    await node.idle(session)
    assert (await the_call(node, session)).result == '[{"action": "cancel"}]'


async def test_erasing_a_user_erases_what_they_answered(node: TestNode, ana: User) -> None:
    """UI-18: erasing a user removes their name and the content of their answer from the record."""
    session = await begun(node, ana, booking())
    bo = await node.do(person, "Bo")
    await node.do(let_in, session, bo, "editor")
    await answer(node, session, bo, await asked(node, session), FOUR)
    await node.idle(session)
    assert await node.do(erase_names, bo, Deadline(20))
    (record,) = records(await the_call(node, session))
    assert (record["answer"], record["answered_by_id"]) == ({"action": "accept"}, None)
    assert "Bo" not in json.dumps(record)
