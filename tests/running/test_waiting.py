"""UI-12: turns that wait for users: who answers, what the model gets, and what else can happen while a turn waits."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone
from pytest_django.fixtures import Settings

from agents.messages import ToolCall, ToolResult
from agents.providers.scripted import Reply
from agents.tools import Tool, tool
from chat.errors import Invalid, NoSuchMessage, ServiceError
from chat.models import (
    ApprovalRule,
    ChatMessage,
    Membership,
    MessageRevision,
    RunState,
    SecurityEvent,
    Session,
    SessionRun,
    User,
)
from chat.projections.context import NOT_ANSWERED, TOOL_LOST
from chat.services.batches import Deadline
from chat.services.maintenance import jobs
from chat.services.messages import sending
from chat.services.runs import answering
from chat.services.sessions import lifecycle
from chat.session_snapshot import agent_status
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode, let_in, person

CONFIG = {
    "providers": {"scripted": {"type": "demo", "models": {"one": {}}}},
    "agents": {"agent": {"model": "scripted/one", "tools": ["confirmation", "selection", "calculator"]}},
    "default_agent": "agent",
}
ASK = ToolCall("c1", "confirmation", {"question": "Delete the table?"})
CHOOSE = ToolCall(
    "c2",
    "selection",
    {"question": "Which?", "multiple": True, "choices": [{"id": "a", "label": "A"}, {"id": "b", "label": "B"}]},
)


def deploying(ran: list[str]) -> Tool:
    """Return a tool that needs an approval and records its arguments."""

    @tool(approval=True)
    async def deploy(target: str) -> str:
        """Deploy to a server."""
        ran.append(target)
        return f"deployed to {target}"

    return deploy


def deploy_call(target: str = "production", number: int = 1) -> ToolCall:
    return ToolCall(f"d{number}", "deploy", {"target": target})


async def waiting(node: TestNode, session: Session) -> list[ChatMessage]:
    """Wait until the session waits for people; return the calls that wait."""
    await node.until(lambda: SessionRun.objects.get(pk=session.pk).state == RunState.WAITING)
    return [row for row in await node.rows(session) if row.status == "waiting"]


async def answer(node: TestNode, session: Session, author: User, row: ChatMessage, value: Any) -> None:
    await node.do(answering.answer, session=session, author=author, message_id=row.pk, value=value)


def results(node: TestNode) -> tuple[ToolResult, ...]:
    """Return the results in the last message that the model got."""
    return node.provider.requests[-1].messages[-1].tool_results


async def test_answer_becomes_the_result_and_the_turn_continues(node: TestNode, ana: User) -> None:
    """UI-12: nothing runs while the agent waits. The answer is the call's result, and the row records who gave it."""
    node.script([["Just to be sure:", ASK], ["Deleted."]], CONFIG)
    session = await node.session(ana)
    await node.send(session, ana, "Delete the table")
    (row,) = await waiting(node, session)
    run = await node.do(SessionRun.objects.get, pk=session.pk)
    assert (run.owner_id, run.done) == (None, run.wanted)
    assert (row.question, row.answer, agent_status(run, "")) == ("confirmation", None, ("waiting", ""))
    await answer(node, session, ana, row, {"confirmed": True})
    await node.idle(session)
    assert results(node) == (ToolResult("c1", '{"confirmed": true}'),)
    (row,) = [each for each in await node.rows(session) if each.type == "tool_group"]
    assert (row.status, row.answer, row.answered_by_id, row.answered_by_name) == (
        "complete",
        {"confirmed": True},
        ana.pk,
        "Ana",
    )
    assert [text for _kind, _status, text in await node.shown(session)][-2] == "Deleted."
    await node.do(check_rest, session)


async def test_wait_outlives_every_process(node: TestNode, ana: User) -> None:
    """UI-12: a restart does not end the wait, and the turn's duration does not include it."""
    node.script([[ASK], ["Done."]], CONFIG)
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await waiting(node, session)
    await node.restart()
    (row,) = await waiting(node, session)
    run = SessionRun.objects.filter(pk=session.pk)
    present = await node.do(run.get)
    hour = 3600

    def an_hour_ago() -> None:
        assert present.waiting_since is not None
        assert present.turn_started_at is not None
        run.update(
            waiting_since=present.waiting_since - timedelta(seconds=hour),
            turn_started_at=present.turn_started_at - timedelta(seconds=hour),
        )

    await node.do(an_hour_ago)
    await answer(node, session, ana, row, {"confirmed": False})
    await node.idle(session)
    end = (await node.rows(session))[-1]
    assert end.duration_seconds is not None
    assert end.duration_seconds < hour
    await node.do(check_rest, session)


async def test_first_answer_counts(node: TestNode, ana: User) -> None:
    """UI-12: the second user is refused with the name of the first."""
    node.script([[ASK], ["Done."]], CONFIG)
    session = await node.session(ana)
    bo = await node.do(person, "Bo", session.workspace)
    await node.do(let_in, session, bo, "editor")
    await node.send(session, ana, "Go")
    (row,) = await waiting(node, session)
    await answer(node, session, bo, row, {"confirmed": False})
    with pytest.raises(ServiceError, match="Bo has already answered") as refused:
        await answer(node, session, ana, row, {"confirmed": True})
    assert (refused.value.code, refused.value.details) == ("already_answered", {"by": "Bo"})
    await node.idle(session)
    assert results(node) == (ToolResult("c1", '{"confirmed": false}'),)


async def test_answer_that_does_not_fit_changes_nothing(node: TestNode, ana: User) -> None:
    """UI-12: an invalid answer is refused with the reason, and the user can answer again."""
    node.script([[ASK, CHOOSE], ["Done."]], CONFIG)
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    confirmation, selection = await waiting(node, session)
    for row, value in [
        (confirmation, True),
        (confirmation, {}),
        (selection, []),
        (selection, ["c"]),
        (selection, None),
    ]:
        with pytest.raises(Invalid):
            await answer(node, session, ana, row, value)
    for text in ("\0", "\ud800"):  # MSG-12: stored exactly, or refused
        with pytest.raises(ServiceError, match=r"can’t be stored|invalid Unicode"):
            await answer(node, session, ana, confirmation, {"confirmed": True, "comment": text})
    said = (await node.rows(session))[1]
    with pytest.raises(NoSuchMessage):
        await answer(node, session, ana, said, {"confirmed": True})
    assert len(await waiting(node, session)) == 2
    assert len(node.provider.requests) == 1


async def test_turn_continues_when_all_calls_are_answered(node: TestNode, ana: User) -> None:
    """UI-12: the other calls of the response run immediately. The model gets all results together."""
    calculate = ToolCall("c3", "calculator", {"expression": "6 * 7"})
    node.script([[ASK, calculate, CHOOSE], ["Done."]], CONFIG)
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    confirmation, selection = await waiting(node, session)
    assert ("tool_group", "complete", "42") in await node.shown(session)
    await answer(node, session, ana, selection, ["b", "a"])
    run = await node.do(SessionRun.objects.get, pk=session.pk)
    assert run.state == RunState.WAITING
    await answer(node, session, ana, confirmation, {"confirmed": True})
    await node.idle(session)
    assert [result.content for result in results(node)] == ['{"confirmed": true}', "42", '["a", "b"]']
    await node.do(check_rest, session)


async def test_message_instead_of_an_answer_ends_the_wait(node: TestNode, ana: User) -> None:
    """UI-12, RUN-06: the model learns that the question was not answered, and then reads the message."""
    node.script([[ASK], ["As you like."]], CONFIG)
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    (row,) = await waiting(node, session)
    await node.send(session, ana, "Leave it")
    await node.idle(session)
    messages = node.provider.requests[-1].messages
    assert messages[-2].tool_results == (ToolResult("c1", NOT_ANSWERED, True),)
    assert messages[-1].text == "Leave it"
    with pytest.raises(ServiceError, match="no longer waits"):
        await answer(node, session, ana, row, {"confirmed": True})
    await node.do(check_rest, session)


async def test_stop_ends_the_wait(node: TestNode, ana: User) -> None:
    """UI-12, RUN-07: Stop ends the wait although no process runs the turn, and the row names the user who stopped
    it."""
    node.script([[ASK]], CONFIG)
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    (row,) = await waiting(node, session)
    assert await node.cancel(session, ana)
    await node.idle(session)
    shown = await node.rows(session)
    assert [(each.status, each.result) for each in shown if each.pk == row.pk] == [("interrupted", NOT_ANSWERED)]
    assert (shown[-1].end_reason, shown[-1].stopped_by_name) == ("stopped", "Ana")
    await node.do(check_rest, session)


async def test_approved_call_runs_and_a_refused_one_does_not(node: TestNode, ana: User) -> None:
    """UI-12: the row records each decision, and the model reads why a call was refused."""
    ran: list[str] = []
    node.script([[deploy_call("test"), deploy_call("production", 2)], ["Done."]], CONFIG, [deploying(ran)])
    session = await node.session(ana)
    await node.send(session, ana, "Deploy")
    first, second = await waiting(node, session)
    assert (ran, first.question) == ([], "approval")
    await answer(node, session, ana, first, {"approved": True})
    await node.until(lambda: ChatMessage.objects.get(pk=first.pk).status == "complete")
    (second,) = await waiting(node, session)
    await answer(node, session, ana, second, {"approved": False, "comment": "Not on a Friday."})
    await node.idle(session)
    assert ran == ["test"]
    assert results(node) == (
        ToolResult("d1", "deployed to test"),
        ToolResult("d2", "[Not run: Ana refused this call.] Not on a Friday.", True),
    )
    kinds = [
        event.details["approved"] for event in await node.do(list, SecurityEvent.objects.filter(kind="tool_decided"))
    ]
    assert sorted(kinds) == [0, 1]
    await node.do(check_rest, session)


async def test_changed_arguments_are_bounded(node: TestNode, ana: User) -> None:
    """MSG-12: changed arguments must be JSON and have the limit of a message."""
    ran: list[str] = []
    node.script([[deploy_call()], ["Done."]], CONFIG, [deploying(ran)])
    session = await node.session(ana)
    await node.send(session, ana, "Deploy")
    (row,) = await waiting(node, session)
    for given in ({"target": "x" * settings.MAX_MESSAGE_CHARS}, {"target": "x", "more": float("nan")}):
        with pytest.raises(ServiceError) as refused:
            await answer(node, session, ana, row, {"approved": True, "arguments": given})
        assert refused.value.code in ("too_long", "invalid")
    assert (await waiting(node, session))[0].arguments == {"target": "production"}


async def test_arguments_can_be_changed_before_the_call_runs(node: TestNode, ana: User) -> None:
    """UI-12: the model gets the call as it ran, and the revision keeps the original arguments."""
    ran: list[str] = []
    node.script([[deploy_call("production")], ["Done."]], CONFIG, [deploying(ran)])
    session = await node.session(ana)
    await node.send(session, ana, "Deploy")
    (row,) = await waiting(node, session)
    with pytest.raises(Invalid, match="Approve the call to change"):
        await answer(node, session, ana, row, {"approved": False, "arguments": {"target": "x"}})
    await answer(node, session, ana, row, {"approved": True, "arguments": {"target": "test"}})
    await node.idle(session)
    assert ran == ["test"]
    (call,) = node.provider.requests[-1].messages[-2].tool_calls
    assert call.arguments == {"target": "test"}
    revision = await node.do(MessageRevision.objects.get, message=row)
    assert revision.before["tool"]["arguments"] == {"target": "production"}


async def test_approval_for_the_session_covers_further_calls(node: TestNode, ana: User) -> None:
    """UI-12: the approval also covers waiting calls. Other sessions, and another agent in this session, ask again."""
    ran: list[str] = []
    script: list[Reply] = [[deploy_call("a"), deploy_call("b", 2)], [deploy_call("c", 3)], ["Done."]]
    node.script(script, CONFIG, [deploying(ran)])
    session = await node.session(ana)
    await node.send(session, ana, "Deploy")
    first, _second = await waiting(node, session)
    await answer(node, session, ana, first, {"approved": True, "scope": "session"})
    await node.idle(session)
    assert sorted(ran) == ["a", "b", "c"]
    await node.do(check_rest, session)
    kept = await node.do(lambda: Session.objects.get(pk=session.pk).config["approved"])
    assert kept == ["deploy"]
    await node.do(lifecycle.set_agent, session=session, author=ana, agent="agent")
    assert "approved" not in await node.do(lambda: Session.objects.get(pk=session.pk).config)
    node.script([[deploy_call("d")]], CONFIG, [deploying(ran)])
    other = await node.session(ana)
    await node.send(other, ana, "Deploy")
    assert len(await waiting(node, other)) == 1


async def test_only_owners_and_admins_always_allow_a_tool(node: TestNode, ana: User) -> None:
    """UI-12: members cannot always allow a tool. The rule covers the agent in all sessions until it is removed."""
    ran: list[str] = []
    node.script(
        lambda request: ["Done."] if request.messages[-1].tool_results else [deploy_call()], CONFIG, [deploying(ran)]
    )
    session = await node.session(ana)
    await node.send(session, ana, "Deploy")
    (row,) = await waiting(node, session)
    always = {"approved": True, "scope": "agent"}
    with pytest.raises(ServiceError, match="Only owners and admins"):
        await answer(node, session, ana, row, always)
    await node.do(Membership.objects.filter(user=ana).update, role="admin")
    await answer(node, session, ana, row, always)
    await node.idle(session)
    other = await node.session(ana)
    await node.send(other, ana, "Deploy")
    await node.idle(other)
    assert len(ran) == 2
    await node.do(ApprovalRule.objects.all().delete)
    third = await node.session(ana)
    await node.send(third, ana, "Deploy")
    assert len(await waiting(node, third)) == 1


async def test_held_message_that_is_sent_ends_the_wait(node: TestNode, ana: User) -> None:
    """RUN-06: a message that a stop held and a user sends ends the wait, as any other message does."""
    node.script([[ASK], ["Second."]], CONFIG)
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await waiting(node, session)

    def hold() -> None:
        ChatMessage.objects.create(session=session, type="text", role="user", status="queued", text="Later", held=True)

    await node.do(hold)
    await node.do(sending.send_now, session=session, author=ana)
    await node.idle(session)
    assert node.provider.requests[-1].messages[-1].text == "[User] Later"
    await node.do(check_rest, session)


async def test_crash_beside_a_question_keeps_the_question(node: TestNode, ana: User) -> None:
    """UI-12, RUN-15: a call that ran is reported as lost.

    The waiting call keeps waiting, and its question is asked once.
    """
    began = asyncio.Event()

    @tool()
    async def work() -> str:
        """Work until the process ends."""
        began.set()
        await asyncio.Event().wait()
        return ""

    node.script([[ASK, ToolCall("w1", "work", {})], ["Done."]], CONFIG, [work])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await asyncio.wait_for(began.wait(), 20)
    await node.restart()
    (row,) = await waiting(node, session)
    await answer(node, session, ana, row, {"confirmed": True})
    await node.idle(session)
    assert results(node) == (ToolResult("c1", '{"confirmed": true}'), ToolResult("w1", TOOL_LOST, True))
    await node.do(check_rest, session)


async def test_answer_while_other_calls_run_is_not_lost(node: TestNode, ana: User) -> None:
    """UI-12: users may answer before the round has ended; the turn then continues without a pause."""
    gate = asyncio.Event()

    @tool()
    async def work() -> str:
        """Work until the test says so."""
        await gate.wait()
        return "worked"

    node.script([[ASK, ToolCall("w1", "work", {})], ["Done."]], CONFIG, [work])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    asked = ChatMessage.objects.filter(session=session, status="waiting")
    await node.until(asked.exists)
    row = await node.do(asked.get)
    await answer(node, session, ana, row, {"confirmed": True})
    gate.set()
    await node.idle(session)
    assert results(node) == (ToolResult("c1", '{"confirmed": true}'), ToolResult("w1", "worked"))
    await node.do(check_rest, session)


async def test_wait_ends_after_the_days_of_the_setting(node: TestNode, ana: User, settings: Settings) -> None:
    """UI-12: the model learns that no one answered, and the turn continues. A shorter wait is left alone."""
    node.script([[ASK], [ASK], ["I leave it."]], CONFIG)
    session, other = await node.session(ana), await node.session(ana)
    await node.send(session, ana, "Go")
    await waiting(node, session)
    await node.send(other, ana, "Go")
    await waiting(node, other)
    long_ago = timezone.now() - timedelta(days=31)
    await node.do(SessionRun.objects.filter(pk=session.pk).update, waiting_since=long_ago)
    settings.ANSWER_DAYS = 0
    assert await node.do(answering.expire, Deadline()) == 0
    settings.ANSWER_DAYS = 30
    assert await node.do(jobs.run)
    await node.idle(session)
    assert results(node) == (ToolResult("c1", "[Not answered: no one answered for 30 days]", True),)
    assert len(await waiting(node, other)) == 1
    await node.do(check_rest, session)


async def test_run_mode_refuses_what_needs_people(node: TestNode, ana: User) -> None:
    """MSG-09: in the mode `run` the session never waits; in another mode it asks again."""
    node.script([[ASK], ["It has to be decided."], [ASK]], CONFIG)
    session = await node.session(ana)
    await node.do(lifecycle.configure, session=session, author=ana, mode="run")
    await node.send(session, ana, "Clean up")
    await node.idle(session)
    (call,) = [row for row in await node.rows(session) if row.type == "tool_group"]
    assert (call.status, call.is_error, call.mode, call.question) == ("failed", True, "run", "")
    assert "no one is available" in call.result
    await node.do(lifecycle.configure, session=session, author=ana, mode="agent")
    await node.send(session, ana, "Clean up")
    assert [row.tool_name for row in await waiting(node, session)] == ["confirmation"]
