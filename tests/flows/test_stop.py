"""Stop at every point of every round."""

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
from chat.models import ChatMessage, Session, SessionRun, User
from chat.projections.context import TOOL_INTERRUPTED
from chat.queries.messages import page_of
from chat.runner.runner import Runner
from chat.services.messages import sending
from chat.services.runs import control
from tests.support.house import House, ScriptedRegistry
from tests.support.rest import check_rest
from tests.support.workbench import Workbench, work

Shown = list[tuple[str, str, str]]


@dataclass
class Stage:
    """A turn of two tool rounds and an answer, with a gate at every point; `stand` waits until one is reached."""

    house: House
    bench: Workbench = field(default_factory=Workbench)
    gates: dict[str, Gate] = field(default_factory=dict)

    def script(self, closed: str) -> None:
        """Hold the model at one point alone."""
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
        self.house.script([first, second, third, ["Fine."]], tools=[self.bench.tool])

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


async def check_stopped(house: House, session: Session, author: User, kept: Shown) -> None:
    """What there was is kept, in place; the session rests, and the next message works."""
    await house.idle(session)
    assert await house.shown(session) == [*START, *kept, *END]
    assert house.provider.streaming == 0
    house.script([["Fine."]])
    await house.send(session, author, "Next")
    await house.idle(session)
    assert (await house.shown(session))[-2:] == [("text", "complete", "Fine."), ("turn_done", "complete", "")]
    await house.do(check_rest, session)


@pytest.mark.parametrize("point", POINTS)
async def test_stop_works_while_the_model_speaks(house: House, ana: User, point: str) -> None:
    """RUN-07, RUN-08: at every point of every response, of any round."""
    stage = Stage(house)
    stage.script(closed=point)
    stage.bench.let_go(1, 2, 3, 4)
    session = await house.session(ana)
    await house.send(session, ana, "Go")
    await stage.stand(point)
    assert await house.cancel(session, ana)
    await check_stopped(house, session, ana, POINTS[point])


@pytest.mark.parametrize(
    ("finished", "kept"),
    [
        ([], [*SAID, CUT, CUT, CUT]),
        ([2], [*SAID, CUT, DID[1], CUT]),
        ([3, 1], [*SAID, DID[0], CUT, DID[2]]),
        ([1, 2, 3], [*SAID, *DID, ("text", "complete", "And "), CUT]),
    ],
)
async def test_stop_works_while_tools_run(house: House, ana: User, finished: list[int], kept: Shown) -> None:
    """RUN-07, RUN-08: finished results are kept, the others are reported as interrupted; in any round."""
    stage = Stage(house)
    stage.script(closed="nowhere")
    session = await house.session(ana)
    await house.send(session, ana, "Go")
    await stage.bench.begun(1, 2, 3)
    stage.bench.let_go(*finished)
    await stage.bench.begun(*([4] if len(finished) == 3 else []))
    results = ChatMessage.objects.filter(session=session, type="tool_group", status="complete")
    await house.until(lambda: results.count() == len(finished))
    assert await house.cancel(session, ana)
    await check_stopped(house, session, ana, kept)
    assert sorted(stage.bench.did) == sorted(finished)


async def test_stop_works_between_tools_that_must_not_meet(house: House, ana: User) -> None:
    """RUN-08, RUN-11: the one that runs and those that have not begun are reported alike; none begins afterwards."""
    bench = Workbench()
    house.script([["Look", *work(1, 2, name="lone_work")]], tools=[bench.lone_tool])
    session = await house.session(ana)
    await house.send(session, ana, "Go")
    await bench.begun(1)
    await house.cancel(session, ana)
    await check_stopped(house, session, ana, [("text", "complete", "Look"), CUT, CUT])
    assert bench.begins == [1]


async def test_stop_works_while_a_retry_waits(house: House, ana: User) -> None:
    """RUN-07, RUN-10: the back-off is no time to be deaf."""
    house.script([[RateLimited("Slow.", retry_after=50.0)]])
    session = await house.session(ana)
    await house.send(session, ana, "Go")
    await house.until(lambda: len(house.provider.requests) == 1 and house.provider.streaming == 0)
    await house.cancel(session, ana)
    await check_stopped(house, session, ana, [])


class SlowRegistry(ScriptedRegistry):
    """Takes its time to make an agent, as a large session's context does."""

    def __init__(self, house: House) -> None:
        super().__init__(house.provider)
        self.asked, self.go = threading.Event(), threading.Event()

    def build_agent(self, preset: AgentPreset) -> Agent:
        self.asked.set()
        assert self.go.wait(20)
        return super().build_agent(preset)


async def test_stop_works_while_the_context_is_read(house: House, ana: User) -> None:
    """RUN-07: no one waits for the database, and what comes of it is not used."""
    registry = SlowRegistry(house)
    agents_setup.install(registry)
    session = await house.session(ana)
    await house.send(session, ana, "Go")
    await house.do(registry.asked.wait, 20)
    await house.cancel(session, ana)
    try:
        await house.idle(session)
    finally:
        registry.go.set()
    assert house.provider.requests == []
    await check_stopped(house, session, ana, [])


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.both_databases
async def test_stop_works_before_anybody_runs_the_turn(
    transactional_db: None, ana: User, settings: Settings, times: int
) -> None:
    """RUN-07: it is a state: each worker that claims the session finds it; the model is never asked."""
    settings.RUNNER = "none"
    house = House()
    await house.start()
    runner = Runner()
    try:
        session = await house.session(ana)
        await house.send(session, ana, "Go")
        for _ in range(times):
            assert await house.cancel(session, ana)
        await runner.start()
        await house.idle(session)
        assert house.provider.requests == []
        await check_stopped(house, session, ana, [])
    finally:
        await runner.stop()
        await house.stop()
        await house.threads.close()


async def test_repeated_stops_are_harmless(house: House, ana: User, bo: User) -> None:
    """RUN-07: from several tabs and people at once, and once more when it is over."""
    gate = Gate()
    house.script([["Once", gate]])
    session = await house.session(ana)
    await house.send(session, ana, "Go")
    await gate.reached()
    for author in (ana, bo, ana):
        await house.cancel(session, author)
    await house.idle(session)
    assert not await house.cancel(session, bo)
    await check_stopped(house, session, ana, [("text", "interrupted", "Once")])


@pytest.mark.both_databases
async def test_late_stop_does_not_stop_the_next_turn(house: House, ana: User) -> None:
    """RUN-07: a nudge that belongs to a turn that is over."""
    gate = Gate()
    house.script([["One."], ["Two", gate, " and three."]])
    session = await house.session(ana)
    await house.send(session, ana, "Go")
    turn = (await house.do(SessionRun.objects.get, pk=session.pk)).turn_id
    await house.idle(session)
    await house.send(session, ana, "On")
    await gate.reached()
    wakeups.send(wakeups.Wakeup.STOP, session.pk, turn)
    gate.open()
    await house.idle(session)
    assert (await house.shown(session))[-2:] == [("text", "complete", "Two and three."), ("turn_done", "complete", "")]


async def test_stop_holds_the_queue(house: House, ana: User, bo: User) -> None:
    """RUN-06, RUN-07: what two people have queued waits until a person sends it, no matter who stopped the turn.

    A new message begins a turn with itself alone; the held ones stay, over a restart too.
    """
    gate = Gate()
    provider = house.script([["Once", gate], ["Fine."], ["All right."], ["Good."]])
    session = await house.session(ana)
    await house.send(session, ana, "Go")
    await gate.reached()
    first = await house.send(session, bo, "Something else")
    await house.send(session, ana, "And this")
    await house.cancel(session, bo)
    await house.idle(session)
    queued = (await house.do(page_of, session)).queued
    assert [(message.text, message.held) for message in queued] == [("Something else", True), ("And this", True)]
    end = (await house.do(page_of, session)).messages[-1]
    assert (end.status, end.end_reason, end.stopped_by, end.stopped_by_id) == ("interrupted", "stopped", "Bo", bo.pk)
    await house.restart()
    await house.send(session, ana, "Rather this")
    await house.idle(session)
    assert [message.text for message in provider.requests[-1].messages][-1] == "Rather this"
    assert len((await house.do(page_of, session)).queued) == 2
    assert await house.do(sending.send_now, session=session, author=ana, message_id=first.id) == 1
    await house.idle(session)
    assert await house.do(sending.send_now, session=session, author=bo) == 1
    await house.idle(session)
    said = [(row.text, row.held) for row in await house.rows(session) if row.type == "text"]
    assert said[-4:] == [("Something else", False), ("All right.", False), ("And this", False), ("Good.", False)]
    assert await house.do(sending.send_now, session=session, author=bo) == 0
    await house.do(check_rest, session)


async def test_held_message_joins_the_queue_while_the_agent_works(house: House, ana: User) -> None:
    """RUN-06: sent during another turn, it is delivered when that turn ends."""
    gates = Gate(), Gate()
    house.script([["One", gates[0]], ["Two", gates[1]], ["Three."]])
    session = await house.session(ana)
    await house.send(session, ana, "Go")
    await gates[0].reached()
    held = await house.send(session, ana, "Wait")
    await house.cancel(session, ana)
    await house.idle(session)
    await house.send(session, ana, "On")
    await gates[1].reached()
    await house.do(sending.send_now, session=session, author=ana, message_id=held.id)
    assert [message.held for message in (await house.do(page_of, session)).queued] == [False]
    gates[1].open()
    await house.idle(session)
    texts = [text for kind, _, text in await house.shown(session) if kind == "text"]
    assert texts == ["Go", "One", "On", "Two", "Wait", "Three."]
    await house.do(check_rest, session)


@pytest.mark.both_databases
async def test_message_sent_while_the_turn_stops_is_answered(house: House, ana: User) -> None:
    """RUN-06, RUN-08: it came after the stop, so it begins the next turn; what was queued before stays held."""
    gate = Gate()
    house.script([["Once", gate], ["Yes."]])
    session = await house.session(ana)
    await house.send(session, ana, "Go")
    await gate.reached()
    await house.send(session, ana, "Before")

    def stop_and_send() -> None:
        with transaction.atomic():
            control.cancel(session=session, author=ana)
            sending.send_message(session=session, author=ana, text="After")

    await house.do(stop_and_send)
    await house.idle(session)
    texts = [(text, status) for kind, status, text in await house.shown(session) if kind == "text"]
    assert texts[-3:] == [("After", "complete"), ("Yes.", "complete"), ("Before", "queued")]


async def test_first_person_to_stop_is_named(house: House, ana: User, bo: User) -> None:
    """MSG-11: later stops of the same turn change nothing, and the next turn knows no one."""
    gate = Gate()
    house.script([["Once", gate], ["Fine."]])
    session = await house.session(ana)
    await house.send(session, ana, "Go")
    await gate.reached()

    def stop_twice() -> None:
        with transaction.atomic():
            control.cancel(session=session, author=bo)
            control.cancel(session=session, author=ana)

    await house.do(stop_twice)
    await house.idle(session)
    await house.send(session, ana, "On")
    await house.idle(session)
    ends = [row for row in await house.rows(session) if row.type == "turn_done"]
    assert [(row.stopped_by_name, row.end_reason) for row in ends] == [("Bo", "stopped"), ("", "")]
