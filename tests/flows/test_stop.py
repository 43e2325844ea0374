"""Stops at every point of every round."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import transaction
from pytest_django.fixtures import Settings

from agents.errors import RateLimited
from agents.events import ReasoningDelta, Usage
from agents.loop import Agent
from agents.providers.scripted import Gate, Reply
from agents.registry import AgentPreset
from chat import agents_setup
from chat.bus import wakeups
from chat.bus.wakeups import Wakeup, WakeupKind
from chat.models import ChatMessage, Session, SessionRun, User
from chat.projections.context import TOOL_INTERRUPTED
from chat.queries.messages import page_before
from chat.runner import agent_input
from chat.runner.runner import Runner
from chat.services.messages import sending
from chat.services.runs import control
from tests.support.rest import check_rest
from tests.support.testing_node import ScriptedRegistry, TestNode
from tests.support.workbench import Workbench, work

Shown = list[tuple[str, str, str]]


@dataclass
class Stage:
    """A turn of two tool rounds and an answer, with a gate at every point; `stand` waits until one is reached."""

    node: TestNode
    bench: Workbench = field(default_factory=Workbench)
    gates: dict[str, Gate] = field(default_factory=dict)

    def script(self, closed: str) -> None:
        """Hold the model at only one point."""
        gate = self.gates[closed] = Gate()

        def at(name: str) -> list[Any]:
            return [gate] if name == closed else []

        first: Reply = [
            *at("before the first token"),
            ReasoningDelta("hm"),
            *at("in the reasoning"),
            "Let ",
            *at("in the text"),
            "me see.",
            *at("after the text"),
            *work(1),
            *at("after a call"),
            *work(2, 3),
            *at("before the end of the response"),
            Usage(100, 10),
        ]
        second = [*at("before the second round"), "And ", *at("in the second round"), *work(4)]
        third = [*at("before the answer"), "So.", *at("at the very end")]
        self.node.script([first, second, third, ["Fine."]], tools=[self.bench.tool])

    async def stand(self, point: str) -> None:
        if point in self.gates:
            await self.gates[point].reached()


START: Shown = [("turn_start", "complete", ""), ("text", "complete", "Go")]
END: Shown = [("turn_done", "interrupted", "")]
THOUGHT: Shown = [("reasoning", "complete", "hm")]
SAID: Shown = [*THOUGHT, ("text", "complete", "Let me see.")]
DID: Shown = [("tool_group", "complete", f"did {n}") for n in (1, 2, 3)]
CUT = ("tool_group", "interrupted", TOOL_INTERRUPTED)
POINTS: dict[str, Shown] = {
    "before the first token": [],
    "in the reasoning": [("reasoning", "interrupted", "hm")],
    "in the text": [*THOUGHT, ("text", "interrupted", "Let ")],
    "after the text": [*THOUGHT, ("text", "interrupted", "Let me see.")],
    "after a call": [*SAID, CUT],
    "before the end of the response": [*SAID, CUT, CUT, CUT],
    "before the second round": [*SAID, *DID],
    "in the second round": [*SAID, *DID, ("text", "interrupted", "And ")],
    "before the answer": [*SAID, *DID, ("text", "complete", "And "), ("tool_group", "complete", "did 4")],
    "at the very end": [
        *SAID,
        *DID,
        ("text", "complete", "And "),
        ("tool_group", "complete", "did 4"),
        ("text", "interrupted", "So."),
    ],
}


async def check_stopped(node: TestNode, session: Session, author: User, kept: Shown) -> None:
    """Check that the output is kept in place, the session is idle, and the next message works."""
    await node.idle(session)
    assert await node.shown(session) == [*START, *kept, *END]
    assert node.provider.streaming == 0
    node.script([["Fine."]])
    await node.send(session, author, "Next")
    await node.idle(session)
    assert (await node.shown(session))[-2:] == [("text", "complete", "Fine."), ("turn_done", "complete", "")]
    await node.do(check_rest, session)


@pytest.mark.parametrize("point", POINTS)
async def test_stop_works_while_the_model_speaks(node: TestNode, ana: User, point: str) -> None:
    """RUN-07, RUN-08: a stop works at every point of every response in any round."""
    stage = Stage(node)
    stage.script(closed=point)
    stage.bench.let_go(1, 2, 3, 4)
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await stage.stand(point)
    assert await node.cancel(session, ana)
    await check_stopped(node, session, ana, POINTS[point])


@pytest.mark.parametrize(
    ("finished", "kept"),
    [
        ([], [*SAID, CUT, CUT, CUT]),
        ([2], [*SAID, CUT, DID[1], CUT]),
        ([3, 1], [*SAID, DID[0], CUT, DID[2]]),
        ([1, 2, 3], [*SAID, *DID, ("text", "complete", "And "), CUT]),
    ],
)
async def test_stop_works_while_tools_run(node: TestNode, ana: User, finished: list[int], kept: Shown) -> None:
    """RUN-07, RUN-08: finished results are kept and the others reported as interrupted, in any round."""
    stage = Stage(node)
    stage.script(closed="nowhere")
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await stage.bench.begun(1, 2, 3)
    stage.bench.let_go(*finished)
    await stage.bench.begun(*([4] if len(finished) == 3 else []))
    results = ChatMessage.objects.filter(session=session, type="tool_group", status="complete")
    await node.until(lambda: results.count() == len(finished))
    assert await node.cancel(session, ana)
    await check_stopped(node, session, ana, kept)
    assert sorted(stage.bench.did) == sorted(finished)


async def test_stop_works_between_tools_that_must_not_meet(node: TestNode, ana: User) -> None:
    """RUN-08, RUN-11: the running call and the waiting ones are reported as interrupted, and none begins afterwards."""
    bench = Workbench()
    node.script([["Look", *work(1, 2, name="lone_work")]], tools=[bench.lone_tool])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await bench.begun(1)
    await node.cancel(session, ana)
    await check_stopped(node, session, ana, [("text", "complete", "Look"), CUT, CUT])
    assert bench.begins == [1]


async def test_stop_works_while_a_retry_waits(node: TestNode, ana: User) -> None:
    """RUN-07, RUN-10: a stop works while a failed request waits to be repeated."""
    node.script([[RateLimited("Slow.", retry_after=50.0)]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await node.until(lambda: len(node.provider.requests) == 1 and node.provider.streaming == 0)
    await node.cancel(session, ana)
    await check_stopped(node, session, ana, [])


class SlowRegistry(ScriptedRegistry):
    """A registry that takes long to make an agent, like the context of a large session."""

    def __init__(self, node: TestNode) -> None:
        super().__init__(node.provider)
        self.asked, self.go = threading.Event(), threading.Event()

    def build_agent(self, preset: AgentPreset) -> Agent:
        self.asked.set()
        assert self.go.wait(20)
        return super().build_agent(preset)


async def test_stop_works_while_the_context_is_read(node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """RUN-07: a stop does not wait for the database, and the context that was read is not used."""
    monkeypatch.setattr(agent_input, "SHORT_CONTEXT", 0)  # longer contexts are read by the runner's threads
    registry = SlowRegistry(node)
    agents_setup.install(registry)
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await node.do(registry.asked.wait, 20)
    await node.cancel(session, ana)
    try:
        await node.idle(session)
    finally:
        registry.go.set()
    assert node.provider.requests == []
    await check_stopped(node, session, ana, [])


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.both_databases
async def test_stop_works_before_anybody_runs_the_turn(
    transactional_db: None, ana: User, settings: Settings, times: int
) -> None:
    """RUN-07: the stop is stored, so each worker that claims the session finds it and sends no request."""
    settings.RUNNER = "none"
    node = TestNode()
    await node.start()
    runner = Runner()
    try:
        session = await node.session(ana)
        await node.send(session, ana, "Go")
        for _ in range(times):
            assert await node.cancel(session, ana)
        await runner.start()
        await node.idle(session)
        assert node.provider.requests == []
        await check_stopped(node, session, ana, [])
    finally:
        await runner.stop()
        await node.stop()
        await node.threads.close()


async def test_repeated_stops_are_harmless(node: TestNode, ana: User, bo: User) -> None:
    """RUN-07: stops from several tabs and users, also after the end, change nothing more."""
    gate = Gate()
    node.script([["Once", gate]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await gate.reached()
    for author in (ana, bo, ana):
        await node.cancel(session, author)
    await node.idle(session)
    assert not await node.cancel(session, bo)
    await check_stopped(node, session, ana, [("text", "interrupted", "Once")])


@pytest.mark.both_databases
async def test_late_stop_does_not_stop_the_next_turn(node: TestNode, ana: User) -> None:
    """RUN-07: a wakeup for a turn that has ended does not stop the next turn."""
    gate = Gate()
    node.script([["One."], ["Two", gate, " and three."]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    turn = (await node.do(SessionRun.objects.get, pk=session.pk)).turn_id
    await node.idle(session)
    await node.send(session, ana, "On")
    await gate.reached()
    wakeups.send(Wakeup(WakeupKind.STOP, session.pk, turn))
    gate.open()
    await node.idle(session)
    assert (await node.shown(session))[-2:] == [("text", "complete", "Two and three."), ("turn_done", "complete", "")]


async def test_stop_holds_the_queue(node: TestNode, ana: User, bo: User) -> None:
    """RUN-06, RUN-07: messages that two users have queued wait until a user sends them, no matter who stopped the turn.

    A new message begins a turn alone, and the held ones stay, also after a restart.
    """
    gate = Gate()
    provider = node.script([["Once", gate], ["Fine."], ["All right."], ["Good."]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await gate.reached()
    first = await node.send(session, bo, "Something else")
    await node.send(session, ana, "And this")
    await node.cancel(session, bo)
    await node.idle(session)
    queued = (await node.do(page_before, session)).queued
    assert [(message.text, message.held) for message in queued] == [("Something else", True), ("And this", True)]
    end = (await node.do(page_before, session)).messages[-1]
    assert (end.status, end.end_reason, end.stopped_by, end.stopped_by_id) == ("interrupted", "stopped", "Bo", bo.pk)
    await node.restart()
    await node.send(session, ana, "Rather this")
    await node.idle(session)
    assert [message.text for message in provider.requests[-1].messages][-1] == "Rather this"
    assert len((await node.do(page_before, session)).queued) == 2
    assert await node.do(sending.send_now, session=session, author=ana, message_id=first.id) == 1
    await node.idle(session)
    assert await node.do(sending.send_now, session=session, author=bo) == 1
    await node.idle(session)
    said = [(row.text, row.held) for row in await node.rows(session) if row.type == "text"]
    assert said[-4:] == [("Something else", False), ("All right.", False), ("And this", False), ("Good.", False)]
    assert await node.do(sending.send_now, session=session, author=bo) == 0
    await node.do(check_rest, session)


async def test_held_message_joins_the_queue_while_the_agent_works(node: TestNode, ana: User) -> None:
    """RUN-06: a held message that is sent during another turn is delivered when that turn ends."""
    gates = Gate(), Gate()
    node.script([["One", gates[0]], ["Two", gates[1]], ["Three."]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await gates[0].reached()
    held = await node.send(session, ana, "Wait")
    await node.cancel(session, ana)
    await node.idle(session)
    await node.send(session, ana, "On")
    await gates[1].reached()
    await node.do(sending.send_now, session=session, author=ana, message_id=held.id)
    assert [message.held for message in (await node.do(page_before, session)).queued] == [False]
    gates[1].open()
    await node.idle(session)
    texts = [text for kind, _, text in await node.shown(session) if kind == "text"]
    assert texts == ["Go", "One", "On", "Two", "Wait", "Three."]
    await node.do(check_rest, session)


@pytest.mark.both_databases
async def test_message_sent_while_the_turn_stops_is_answered(node: TestNode, ana: User) -> None:
    """RUN-06, RUN-08: a message sent after the stop begins the next turn, and messages queued before it stay held."""
    gate = Gate()
    node.script([["Once", gate], ["Yes."]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await gate.reached()
    await node.send(session, ana, "Before")

    def stop_and_send() -> None:
        with transaction.atomic():
            control.cancel(session=session, author=ana)
            sending.send_message(session=session, author=ana, text="After")

    await node.do(stop_and_send)
    await node.idle(session)
    texts = [(text, status) for kind, status, text in await node.shown(session) if kind == "text"]
    assert texts[-3:] == [("After", "complete"), ("Yes.", "complete"), ("Before", "queued")]


async def test_first_person_to_stop_is_named(node: TestNode, ana: User, bo: User) -> None:
    """MSG-11: later stops of the same turn do not change the name, and the next turn has none."""
    gate = Gate()
    node.script([["Once", gate], ["Fine."]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await gate.reached()

    def stop_twice() -> None:
        with transaction.atomic():
            control.cancel(session=session, author=bo)
            control.cancel(session=session, author=ana)

    await node.do(stop_twice)
    await node.idle(session)
    await node.send(session, ana, "On")
    await node.idle(session)
    ends = [row for row in await node.rows(session) if row.type == "turn_done"]
    assert [(row.stopped_by_name, row.end_reason) for row in ends] == [("Bo", "stopped"), ("", "")]
