"""Requests of operators to workers, which take effect at the next heartbeat: drain, hand over, close."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from agents.messages import ToolCall
from agents.providers.scripted import Gate
from chat.models import ChatMessage, SessionRun, User
from chat.runner import runtime
from chat.runner.runner import Runner
from chat.services.runs import operating
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode
from tests.support.workbench import Workbench

pytestmark = pytest.mark.server


@pytest.fixture
def first(node: TestNode) -> Runner:
    """The node's runner."""
    assert runtime._runtime is not None
    assert runtime._runtime.runner is not None
    return runtime._runtime.runner


@pytest_asyncio.fixture
async def second(first: Runner) -> AsyncIterator[Runner]:
    """Another worker of the same database."""
    runner = Runner()
    await runner.start()
    yield runner
    await runner.stop()


def beat(*runners: Runner) -> None:
    """Send heartbeats now."""
    for runner in runners:
        assert runner._heartbeat is not None
        runner._heartbeat.hurry()


def owner(session: object) -> str | None:
    return SessionRun.objects.get(pk=getattr(session, "pk", None)).owner_id


async def test_drained_worker_hands_over_and_takes_nothing(
    node: TestNode, first: Runner, second: Runner, ana: User
) -> None:
    """OPS-08, RUN-15: the drained worker's turn continues at the other worker without a break.

    Later the worker takes sessions again.
    """
    bench = Workbench()
    node.script([["Working.", ToolCall("c1", "work", {"n": 1})], ["Done."], ["More."]], tools=[bench.tool])
    session = await node.session(ana)
    await node.send(session, ana, "Work")
    await bench.begun(1)
    ours, other = (first, second) if await node.do(owner, session) == first.worker_id else (second, first)
    assert await node.do(lambda: operating.set_draining(worker_id=ours.worker_id, draining=True))
    beat(ours)
    await node.until(lambda: ours._is_drained)
    bench.let_go(1)
    await node.idle(session)
    assert [row for row in await node.shown(session) if row[0] == "text"][-1] == ("text", "complete", "Done.")
    assert bench.begins == [1]
    run = await node.do(SessionRun.objects.get, pk=session.pk)
    assert run.claimant == other.worker_id
    assert not ours._has_room()
    await node.do(lambda: operating.set_draining(worker_id=ours.worker_id, draining=False))
    beat(ours)
    await node.until(lambda: not ours._is_drained)
    assert ours._has_room()
    await node.do(check_rest, session)


async def test_turn_is_handed_over_to_another_worker(node: TestNode, first: Runner, second: Runner, ana: User) -> None:
    """OPS-08: the previous worker does not take the turn back while another worker is available."""
    bench = Workbench()
    node.script([["Working.", ToolCall("c1", "work", {"n": 1})], ["Done."]], tools=[bench.tool])
    session = await node.session(ana)
    await node.send(session, ana, "Work")
    await bench.begun(1)
    before = await node.do(owner, session)
    assert await node.do(lambda: operating.hand_over(session=session))
    leaving = next(each for each in (first, second) if each.worker_id == before)
    beat(leaving)
    await node.until(lambda: leaving._running[session.pk][0]._is_handing_over)
    bench.let_go(1)
    await node.idle(session)
    run = await node.do(SessionRun.objects.get, pk=session.pk)
    assert (run.claimant != before, run.attempts) == (True, 0)
    assert not await node.do(lambda: operating.hand_over(session=session))
    await node.do(check_rest, session)


async def test_only_worker_continues_what_it_hands_over(node: TestNode, first: Runner, ana: User) -> None:
    """OPS-08: if there is no other worker, a request to hand over blocks nothing."""
    bench = Workbench()
    node.script([["Working.", ToolCall("c1", "work", {"n": 1})], ["Done."]], tools=[bench.tool])
    session = await node.session(ana)
    await node.send(session, ana, "Work")
    await bench.begun(1)
    await node.do(lambda: operating.hand_over(session=session))
    beat(first)
    await node.until(lambda: first._running[session.pk][0]._is_handing_over)
    bench.let_go(1)
    await node.idle(session)
    assert ("text", "complete", "Done.") in await node.shown(session)


async def test_turn_that_hangs_is_closed_by_another_worker(
    node: TestNode, first: Runner, second: Runner, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-08, RUN-08: the hanging worker ignores Stop, so another one closes the turn.

    The partial answer stays, and the next message works.
    """
    gate = Gate()
    node.script([["One", gate], ["Two."]])
    session = await node.session(ana)
    await node.send(session, ana, "Count")
    await gate.reached()
    await node.until(lambda: ChatMessage.objects.filter(session=session, status="streaming").exists())
    before = await node.do(owner, session)
    hanging = next(each for each in (first, second) if each.worker_id == before)
    monkeypatch.setattr(hanging._running[session.pk][0], "stop", lambda turn_id: None)
    assert await node.do(lambda: operating.close(session=session, author=ana))
    await node.idle(session)
    run = await node.do(SessionRun.objects.get, pk=session.pk)
    assert run.claimant != before
    shown = await node.shown(session)
    assert ("text", "interrupted", "One") in shown
    await node.send(session, ana, "Again")
    await node.idle(session)
    assert ("text", "complete", "Two.") in await node.shown(session)
    await node.do(check_rest, session)
