"""Recovery of sessions that a dead process has left: first on the rows, then by a node that finds them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from django.utils import timezone
from pytest_django.fixtures import Settings

from agents.providers.scripted import Gate
from chat import ids
from chat.models import ChatMessage, MessageDelta, Session, SessionRun, User
from chat.projections.context import TOOL_INTERRUPTED, TOOL_LOST, TOOL_NOT_BEGUN
from chat.runs.reducer import RESUME_NOTE
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode
from tests.support.workbench import Workbench, work

Shown = list[tuple[str, str, str]]
START: Shown = [("turn_start", "complete", ""), ("text", "complete", "Go")]
DONE: Shown = [("turn_done", "complete", "")]
STOPPED: Shown = [("turn_done", "interrupted", "")]
NOTE: Shown = [("text", "complete", RESUME_NOTE)]
ANSWER: Shown = [("text", "complete", "Fine.")]

SAID = {"role": "assistant", "text": "Look", "response_id": "r_1"}
CUT = {**SAID, "text": "Lo", "status": "streaming"}
THINKING = {"type": "reasoning", "role": "assistant", "text": "h", "response_id": "r_1", "status": "streaming"}


def call(number: int, status: str, result: str = "") -> dict[str, Any]:
    return {
        "type": "tool_group",
        "role": "assistant",
        "response_id": "r_1",
        "status": status,
        "tool_call_id": f"w{number}",
        "tool_name": "work",
        "arguments": {"n": number},
        "result": result,
    }


TOLD_LOST = ("tool_group", "interrupted", TOOL_LOST)
NOT_BEGUN = ("tool_group", "interrupted", TOOL_NOT_BEGUN)
SAID_SHOWN: Shown = [("text", "complete", "Look")]
# The rows before → the messages shown after the turn was resumed, and after it was closed.
LEFT: dict[str, tuple[list[dict[str, Any]], Shown, Shown]] = {
    "before the first token": ([], [*ANSWER, *DONE], [*ANSWER, *DONE]),
    "in the text": (
        [CUT],
        [("text", "interrupted", "Look he"), *NOTE, *ANSWER, *DONE],
        [("text", "interrupted", "Look he"), *STOPPED],
    ),
    "in the reasoning": (
        [THINKING],
        [("reasoning", "interrupted", "hok he"), *ANSWER, *DONE],
        [("reasoning", "interrupted", "hok he"), *STOPPED],
    ),
    "in the reasoning after a text": (
        [SAID, THINKING],
        [*SAID_SHOWN, ("reasoning", "interrupted", "hok he"), *NOTE, *ANSWER, *DONE],
        [*SAID_SHOWN, ("reasoning", "interrupted", "hok he"), *STOPPED],
    ),
    "in the text after a call": (
        [call(1, "pending"), CUT],
        [NOT_BEGUN, ("text", "interrupted", "Look he"), *NOTE, *ANSWER, *DONE],
        [NOT_BEGUN, ("text", "interrupted", "Look he"), *STOPPED],
    ),
    "before the tools": (
        [SAID, call(1, "pending"), call(2, "pending")],
        [*SAID_SHOWN, ("tool_group", "complete", "did 1"), ("tool_group", "complete", "did 2"), *ANSWER, *DONE],
        [*SAID_SHOWN, ("tool_group", "complete", "did 1"), ("tool_group", "complete", "did 2"), *ANSWER, *DONE],
    ),
    "in the tools": (
        [SAID, call(1, "complete", "did it"), call(2, "running"), call(3, "pending")],
        [
            *SAID_SHOWN,
            ("tool_group", "complete", "did it"),
            TOLD_LOST,
            ("tool_group", "complete", "did 3"),
            *ANSWER,
            *DONE,
        ],
        [*SAID_SHOWN, ("tool_group", "complete", "did it"), TOLD_LOST, NOT_BEGUN, *STOPPED],
    ),
    "while a call asks people": (
        [SAID, {**call(1, "waiting"), "asked": [{"question": {"server": "inn", "message": "When?"}}]}],
        [*SAID_SHOWN, TOLD_LOST, *ANSWER, *DONE],
        [*SAID_SHOWN, TOLD_LOST, *STOPPED],
    ),
    "after the tools": (
        [SAID, call(1, "complete", "did it")],
        [*SAID_SHOWN, ("tool_group", "complete", "did it"), *ANSWER, *DONE],
        [*SAID_SHOWN, ("tool_group", "complete", "did it"), *ANSWER, *DONE],
    ),
    "after the answer": ([SAID], [*SAID_SHOWN, *DONE], [*SAID_SHOWN, *DONE]),
    "after an error": (
        [{"type": "error", "role": "assistant", "status": "failed", "text": "Broken"}],
        [("error", "failed", "Broken"), *DONE],
        [("error", "failed", "Broken"), *DONE],
    ),
}


def leave(session: Session, author: User, left: list[dict[str, Any]], state: str = "running") -> None:
    """Store the rows of a turn whose process died two minutes ago and has been declared dead."""
    turn_id, died = ids.turn_id(), timezone.now() - timedelta(minutes=2)
    SessionRun.objects.filter(pk=session.pk).update(
        state=state, turn_id=turn_id, turn_started_at=died, wanted=1, epoch=7, written=3, attempts=1
    )
    opening: list[dict[str, Any]] = [
        {"type": "turn_start"},
        {"role": "user", "text": "Go", "user": author, "sender": "Ana"},
    ]
    for sequence, values in enumerate([*opening, *left], start=1):
        row = ChatMessage(session=session, sequence=sequence, turn_id=turn_id, timestamp=died, **values)
        row.save()
        if row.status == "streaming":
            rest = [MessageDelta(message=row, offset=3, text=" he"), MessageDelta(message=row, offset=1, text="ok")]
            MessageDelta.objects.bulk_create(rest if row.type == "reasoning" else [_moved(one) for one in rest])
    Session.objects.filter(pk=session.pk).update(revision=len(left) + 2)


def _moved(delta: MessageDelta) -> MessageDelta:
    delta.offset += 1
    return delta


@pytest_asyncio.fixture
async def asleep(transactional_db: None) -> AsyncIterator[TestNode]:
    """A node that has not been started but whose database can be used."""
    node = TestNode()
    bench = Workbench()
    bench.let_go(1, 2, 3)
    node.script(lambda request: ["Fine."], tools=[bench.tool])
    yield node
    await node.stop()
    await node.threads.close()


@pytest.mark.parametrize("recovery", ["resume", "close"])
@pytest.mark.parametrize("point", LEFT)
async def test_turn_of_a_dead_process_heals(
    asleep: TestNode, ana: User, settings: Settings, point: str, recovery: str
) -> None:
    """RUN-15, CTX-03: the text is kept and calls that ran are not repeated.
    With RECOVERY=resume, calls that had not begun run and the turn continues; with RECOVERY=close, it is closed.
    """
    settings.RECOVERY = recovery
    left, resumed, closed = LEFT[point]
    session = await asleep.session(ana)
    await asleep.do(leave, session, ana, left)
    await asleep.start()
    await asleep.idle(session)
    assert await asleep.shown(session) == [*START, *(resumed if recovery == "resume" else closed)]
    ends = [row for row in await asleep.rows(session) if row.type == "turn_done"]
    assert [row.end_reason for row in ends] == ["restarted" if row.status == "interrupted" else "" for row in ends]
    await asleep.do(check_rest, session)
    await asleep.send(session, ana, "Next")
    await asleep.idle(session)
    assert (await asleep.shown(session))[-2:] == [*ANSWER, *DONE]
    await asleep.do(check_rest, session)


@pytest.mark.parametrize("point", LEFT)
async def test_turn_that_was_being_stopped_is_stopped(asleep: TestNode, ana: User, point: str) -> None:
    """RUN-07, RUN-15: the stop is stored, so it survives the process, and the model gets no further request."""
    left, _, _ = LEFT[point]
    session = await asleep.session(ana)
    await asleep.do(leave, session, ana, left, "cancelling")
    await asleep.start()
    await asleep.idle(session)
    answered = point in ("after the answer", "after an error")
    assert (await asleep.shown(session))[-1] == ("turn_done", "complete" if answered else "interrupted", "")
    assert (await asleep.rows(session))[-1].end_reason == ("" if answered else "stopped")
    cut = [row for row in await asleep.rows(session) if row.type == "tool_group" and row.status == "interrupted"]
    assert {row.result for row in cut} <= {TOOL_INTERRUPTED}
    assert asleep.provider.requests == []
    await asleep.do(check_rest, session)


async def test_resumed_model_is_asked_to_go_on(asleep: TestNode, ana: User) -> None:
    """RUN-15, CTX-01: the resumed model gets its earlier text, marked as interrupted, and a note to continue."""
    session = await asleep.session(ana)
    await asleep.do(leave, session, ana, [CUT])
    await asleep.start()
    await asleep.idle(session)
    assert [(message.role, message.text) for message in asleep.provider.requests[0].messages] == [
        ("user", "Go"),
        ("assistant", "Look he\n\n[interrupted]"),
        ("system", RESUME_NOTE),
    ]


async def test_model_learns_of_a_lost_tool_call(asleep: TestNode, ana: User) -> None:
    """RUN-15: the model decides whether to repeat a lost tool call; nothing runs twice without its request."""
    session = await asleep.session(ana)
    await asleep.do(leave, session, ana, [SAID, call(1, "running")])
    await asleep.start()
    await asleep.idle(session)
    (result,) = asleep.provider.requests[0].messages[-1].tool_results
    assert (result.content, result.is_error) == (TOOL_LOST, True)


async def test_calls_without_ids_of_their_own_are_carried_out(asleep: TestNode, ana: User) -> None:
    """RUN-15, MSG-10: a call without an id and one with a duplicate id each get their own result."""
    nameless = {**call(3, "pending"), "tool_call_id": ""}
    session = await asleep.session(ana)
    await asleep.do(leave, session, ana, [call(1, "pending"), {**call(2, "pending"), "tool_call_id": "w1"}, nameless])
    await asleep.start()
    await asleep.idle(session)
    results = [row.result for row in await asleep.rows(session) if row.type == "tool_group"]
    assert results == ["did 1", "did 2", "did 3"]
    await asleep.do(check_rest, session)


async def test_queued_messages_run_after_the_healing(asleep: TestNode, ana: User, bo: User, settings: Settings) -> None:
    """RUN-15, RUN-06: messages that users sent while no process ran are answered."""
    settings.RECOVERY = "close"
    session = await asleep.session(ana)
    await asleep.do(leave, session, ana, [CUT])
    assert (await asleep.send(session, bo, "Hello?")).queued
    await asleep.start()
    await asleep.idle(session)
    assert [text for kind, _, text in await asleep.shown(session) if kind == "text"] == [
        "Go",
        "Look he",
        "Hello?",
        "Fine.",
    ]
    await asleep.do(check_rest, session)


async def test_turn_time_counts_from_its_beginning(asleep: TestNode, ana: User) -> None:
    """MSG-05: the turn's duration includes the outage. Text that was cut off by the outage has no duration."""
    session = await asleep.session(ana)
    await asleep.do(leave, session, ana, [CUT])
    await asleep.start()
    await asleep.idle(session)
    rows = await asleep.rows(session)
    assert rows[-1].duration_seconds is not None
    assert 120 <= rows[-1].duration_seconds < 300
    assert rows[2].duration_ms is None


async def test_answer_continues_after_a_restart(node: TestNode, ana: User) -> None:
    """RUN-15: after an operator's restart, the text is kept to the last word and the model continues from there."""
    gate = Gate()
    node.script([["Once ", "upon", gate], [" a time"]])
    session = await node.session(ana)
    await node.send(session, ana, "Tell")
    await gate.reached()
    await node.restart()
    await node.idle(session)
    assert await node.shown(session) == [
        ("turn_start", "complete", ""),
        ("text", "complete", "Tell"),
        ("text", "interrupted", "Once upon"),
        *NOTE,
        ("text", "complete", " a time"),
        *DONE,
    ]
    await node.do(check_rest, session)


async def test_tool_round_continues_after_a_restart(node: TestNode, ana: User) -> None:
    """RUN-15: finished results stay, the call that ran is reported as lost, and the waiting calls run now."""
    bench = Workbench()
    node.script([work(1, 2, 3, name="lone_work"), ["Fine."]], tools=[bench.lone_tool])
    session = await node.session(ana)
    await node.send(session, ana, "Work")
    bench.let_go(1)
    await bench.begun(2)
    await node.until(lambda: ChatMessage.objects.filter(session=session, result="did 1").exists())
    bench.let_go(3)
    await node.restart()
    await node.idle(session)
    assert bench.begins == [1, 2, 3]
    assert [row[2] for row in await node.shown(session) if row[0] == "tool_group"] == ["did 1", TOOL_LOST, "did 3"]
    await node.do(check_rest, session)
