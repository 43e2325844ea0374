"""Runners that drain: they claim no more sessions, and their turns end or move to another worker uninterrupted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from agents.messages import ToolCall
from agents.providers.scripted import Gate
from chat.models import SessionRun, User
from chat.runner import runtime
from chat.runner.runner import Runner
from chat.services.maintenance import jobs
from tests.support.testing_node import TestNode
from tests.support.workbench import Workbench

pytestmark = pytest.mark.server


@pytest_asyncio.fixture
async def old(node: TestNode) -> AsyncIterator[Runner]:
    """The node's runner."""
    assert runtime._runtime is not None
    assert runtime._runtime.runner is not None
    yield runtime._runtime.runner


async def test_streaming_answer_ends_before_the_runner_does(node: TestNode, old: Runner, ana: User) -> None:
    """RUN-15: a draining runner finishes the answer that streams and claims no other session."""
    gate = Gate()
    node.script([["One", gate, " and two."], ["Later."]])
    session, other = await node.session(ana), await node.session(ana)
    await node.send(session, ana, "Count")
    await gate.reached()
    draining = asyncio.ensure_future(old.drain(60))
    await asyncio.sleep(0)
    await node.send(other, ana, "Wait")
    gate.open()
    await draining
    assert (await node.shown(session))[-2:] == [("text", "complete", "One and two."), ("turn_done", "complete", "")]
    assert (await node.do(SessionRun.objects.get, pk=other.pk)).owner_id is None
    new = Runner()
    await new.start()
    await node.idle(other)
    assert (await node.shown(other))[-2] == ("text", "complete", "Later.")
    await new.stop()


async def test_turn_with_tools_is_handed_over_between_responses(node: TestNode, old: Runner, ana: User) -> None:
    """RUN-15, CTX-03: the running tools finish, then another worker requests the next response.

    No row mentions the handover.
    """
    bench = Workbench()
    node.script([["Working.", ToolCall("c1", "work", {"n": 1})], ["Done."]], tools=[bench.tool])
    session = await node.session(ana)
    await node.send(session, ana, "Work")
    await bench.begun(1)
    draining = asyncio.ensure_future(old.drain(60))
    await asyncio.sleep(0)
    bench.let_go(1)
    await draining
    run = await node.do(SessionRun.objects.get, pk=session.pk)
    assert (run.owner_id, run.attempts, run.state) == (None, 0, "running")
    new = Runner()
    await new.start()
    await node.idle(session)
    assert [(type, status, text) for type, status, text in await node.shown(session) if type != "turn_start"] == [
        ("text", "complete", "Work"),
        ("text", "complete", "Working."),
        ("tool_group", "complete", "did 1"),
        ("text", "complete", "Done."),
        ("turn_done", "complete", ""),
    ]
    assert bench.begins == [1]
    await new.stop()


async def test_stop_works_while_a_runner_drains(node: TestNode, old: Runner, ana: User) -> None:
    """RUN-07, RUN-08: a turn whose end a draining runner waits for can still be stopped."""
    gate = Gate()
    node.script([["One", gate, " and two."]])
    session = await node.session(ana)
    await node.send(session, ana, "Count")
    await gate.reached()
    draining = asyncio.ensure_future(old.drain(60))
    await node.cancel(session, ana)
    await draining
    assert ("text", "interrupted", "One") in await node.shown(session)


async def test_stopping_server_releases_its_sessions_before_a_maintenance_job_ends(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-15: other workers continue the turns at once, although a job can take minutes."""
    begun, released = threading.Event(), threading.Event()

    def job(_deadline: object) -> None:
        begun.set()
        released.wait(40)

    monkeypatch.setattr(jobs, "run", job)
    monkeypatch.setattr(runtime, "MAINTENANCE_INTERVAL", 0)
    gate = Gate()
    node.script([["One", gate, " and two."]])
    await node.restart()
    session = await node.session(ana)
    await node.send(session, ana, "Count")
    await gate.reached()
    await asyncio.to_thread(begun.wait, 20)
    stopping = asyncio.ensure_future(node.stop())
    await node.until(lambda: SessionRun.objects.get(pk=session.pk).owner_id is None)
    assert not stopping.done()
    released.set()
    await stopping
