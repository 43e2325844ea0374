"""RUN-19: scheduled runs, from the check that starts them to the recorded outcome."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from agents.errors import ProviderError
from agents.messages import ToolCall
from agents.providers.scripted import Gate
from chat.models import ChatMessage, RunState, Schedule, Session, SessionRun, User
from chat.services.maintenance import scheduled_runs
from chat.services.maintenance.scheduled_runs import settle, start_due
from chat.services.runs import answering
from chat.services.sessions import lifecycle, schedules
from tests.flows.test_delegation import ask, child_of, play
from tests.running.test_agents import CONFIG as TEAM
from tests.running.test_agents import several
from tests.running.test_waiting import ASK, CONFIG, answer, deploy_call, deploying, waiting
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode

CALCULATE = ToolCall("k1", "calculator", {"expression": "6 * 7"})


async def due(node: TestNode, session: Session, author: User, text: str = "Report") -> Schedule:
    """Add a schedule that is due now."""

    def add() -> Schedule:
        row = schedules.add(author=author, session_id=session.pk, text=text, cron="0 9 * * *", zone="UTC")
        Schedule.objects.filter(pk=row.pk).update(next_at=timezone.now() - timedelta(seconds=1))
        return row

    return await node.do(add)


async def start(node: TestNode) -> int:
    return await node.do(start_due, timezone.now())


async def modes(node: TestNode, session: Session) -> list[tuple[str, str]]:
    return [(row.type, row.mode) for row in await node.rows(session)]


async def test_process_starts_what_is_due_and_notes_its_end(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-19: a due schedule starts without a user. Its whole turn is in the mode `run`, and the next turn is not."""
    node.script([["All is well."], ["Hello."]])
    session = await node.session(ana)
    row = await due(node, session, ana)
    monkeypatch.setattr(scheduled_runs, "INTERVAL", 0.05)
    await node.restart()
    await node.until(lambda: Schedule.objects.get(pk=row.pk).last_outcome == "completed")
    assert {mode for _kind, mode in await modes(node, session)} == {"run"}
    assert [text for _kind, _status, text in await node.shown(session)][1:3] == ["Report", "All is well."]
    await node.send(session, ana, "Hi")
    await node.idle(session)
    assert [mode for _kind, mode in await modes(node, session)][4:] == ["agent"] * 4
    await node.do(check_rest, session)


async def test_scheduled_turn_refuses_what_needs_people(node: TestNode, ana: User) -> None:
    """MSG-09: a scheduled turn refuses approvals and questions in any mode of the session; later turns ask users
    again."""
    ran: list[str] = []
    node.script([[ASK, deploy_call()], ["It has to be decided."], [ASK]], CONFIG, tools=[deploying(ran)])
    session = await node.session(ana)
    await due(node, session, ana)
    assert await start(node) == 1
    await node.idle(session)
    calls = [row for row in await node.rows(session) if row.type == "tool_group"]
    assert [(call.status, call.mode) for call in calls] == [("failed", "run"), ("failed", "run")]
    assert ran == []
    await node.send(session, ana, "Clean up")
    assert [row.tool_name for row in await waiting(node, session)] == ["confirmation"]


async def test_session_without_tools_has_them_in_a_scheduled_turn(node: TestNode, ana: User) -> None:
    """MSG-09: the mode of the turn decides whether tools are available, and the session stays in the mode `chat`."""
    node.script([[CALCULATE], ["42."], ["No tools."]])
    session = await node.session(ana)
    await node.do(lifecycle.configure, session=session, author=ana, mode="chat")
    await due(node, session, ana)
    await start(node)
    await node.idle(session)
    assert [row.result for row in await node.rows(session) if row.type == "tool_group"] == ["42"]
    await node.send(session, ana, "And now?")
    await node.idle(session)
    assert [bool(request.tools) for request in node.provider.requests] == [True, True, False]
    assert (await node.do(Session.objects.get, pk=session.pk)).mode == "chat"


async def test_scheduled_message_waits_for_the_end_of_a_turn(node: TestNode, ana: User) -> None:
    """RUN-19: a break between two tool rounds is not the end: the turn that a user waits for continues in its own
    mode."""
    gate = Gate()
    node.script([[gate, CALCULATE], ["It is 42."], ["Reported."]])
    session = await node.session(ana)
    await node.send(session, ana, "6 * 7?")
    await gate.reached()
    await due(node, session, ana)
    assert await start(node) == 1
    gate.open()
    await node.idle(session)
    said = [
        (row.text or row.result, row.mode) for row in await node.rows(session) if row.type in ("text", "tool_group")
    ]
    assert said == [
        ("6 * 7?", "agent"),
        ("42", "agent"),
        ("It is 42.", "agent"),
        ("Report", "run"),
        ("Reported.", "run"),
    ]


async def test_scheduled_message_does_not_answer_for_people(node: TestNode, ana: User) -> None:
    """RUN-19: a question stays open until a user answers it. Then its turn ends, and the scheduled turn begins."""
    node.script([[ASK], ["Deleted."], ["Reported."]], CONFIG)
    session = await node.session(ana)
    await node.send(session, ana, "Delete the table")
    (row,) = await waiting(node, session)
    await due(node, session, ana)
    assert await start(node) == 1
    assert (await node.do(SessionRun.objects.get, pk=session.pk)).state == RunState.WAITING
    assert [each.pk for each in await waiting(node, session)] == [row.pk]
    await answer(node, session, ana, row, {"confirmed": True})
    await node.until(lambda: ChatMessage.objects.filter(session=session, text="Reported.").exists())
    await node.idle(session)
    texts = [each.text for each in await node.rows(session) if each.type == "text"]
    assert texts == ["Delete the table", "Deleted.", "Report", "Reported."]
    await node.do(check_rest, session)


async def test_user_who_writes_beside_it_waits_for_the_answer(node: TestNode, ana: User) -> None:
    """RUN-19: if a user's message is delivered together with a scheduled one, the turn may ask questions."""
    gate = Gate()
    node.script([[gate, "Hello."], [ASK]], CONFIG)
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await gate.reached()
    await due(node, session, ana)
    await start(node)
    await node.send(session, ana, "And clean up")
    gate.open()
    assert [row.mode for row in await waiting(node, session)] == ["agent"]


async def test_scheduled_turn_keeps_its_mode_through_a_restart(node: TestNode, ana: User) -> None:
    """RUN-15, MSG-09: the process that continues the turn reads the mode from the rows."""
    gate = Gate()
    node.script([[gate, "Late"], [ASK], ["It has to be decided."]], CONFIG)
    session = await node.session(ana)
    await due(node, session, ana)
    await start(node)
    await gate.reached()
    await node.restart()
    await node.idle(session)
    assert {row.mode for row in await node.rows(session)} == {"run"}
    assert not await node.do(ChatMessage.objects.filter(session=session, question__gt="").exists)


async def test_retried_turn_is_that_of_the_user_who_retries(node: TestNode, ana: User) -> None:
    """RUN-12, MSG-09: a retry by a user is not in the mode `run`, because that user waits for it."""
    node.script([["Reported."], [ASK], ["Done."]], CONFIG)
    session = await node.session(ana)
    await due(node, session, ana)
    await start(node)
    await node.idle(session)
    (last,) = [row for row in await node.rows(session) if row.text == "Reported."]
    await node.retry(session, ana, last.pk)
    (row,) = await waiting(node, session)
    assert row.mode == "agent"
    await node.do(answering.answer, session=session, author=ana, message_id=row.pk, value={"confirmed": True})
    await node.idle(session)
    await node.do(check_rest, session)


async def test_failed_run_is_noted(node: TestNode, ana: User) -> None:
    """RUN-19: an error of the provider is recorded as the outcome."""
    node.script([[ProviderError("Odd.")]])
    session = await node.session(ana)
    row = await due(node, session, ana)
    await start(node)
    await node.idle(session)
    await node.do(settle)
    row = await node.do(Schedule.objects.get, pk=row.pk)
    assert (row.last_outcome, row.failures) == ("failed", 1)


async def test_all_agents_of_a_scheduled_message_answer_in_its_mode(node: TestNode, ana: User) -> None:
    """RUN-17, MSG-09: the turns of the further agents belong to the schedule too."""
    node.script([["A fact."], [CALCULATE], ["A doubt."]], TEAM)
    session = await several(node, ana, "researcher")
    await due(node, session, ana, "@researcher and @agent, report")
    await start(node)
    await node.idle(session)
    markers = [row for row in await node.rows(session) if row.type == "turn_start"]
    assert [(row.agent_id, row.mode, bool(row.workflow_id)) for row in markers] == [
        ("researcher", "run", True),
        ("agent", "run", True),
    ]
    assert {mode for _kind, mode in await modes(node, session)} == {"run"}


async def test_agents_that_a_scheduled_turn_asks_work_in_its_mode(node: TestNode, ana: User) -> None:
    """RUN-18, MSG-09: subsessions of a scheduled turn are in the mode `run` too, so that nothing in them waits for
    users."""
    play(node, chief=[["I ask. ", ask("Find the key")], ["It is red."]], helper=[["The key is red."]])
    session = await node.session(ana)
    await due(node, session, ana)
    await start(node)
    await node.idle(session)
    assert (await child_of(node, session)).mode == "run"
    assert (await node.do(Session.objects.get, pk=session.pk)).mode == "agent"
