"""The runner: which sessions it runs, when it gives them up, and that it leaves nothing behind when it stops."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from agents.providers.base import Request
from agents.providers.scripted import Gate, Reply
from chat.models import ChatMessage, MessageDelta, SessionRun, User, Worker
from chat.runner import runner, runtime
from chat.runner.runner import Runner
from chat.runs import lease
from chat.runs.reducer import RESUME_NOTE
from chat.services.messages.sending import send_message
from tests.support.listener import Listener
from tests.support.refusals import permit, refuse
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode
from tests.support.workbench import Workbench, work
from tests.support.workers import declare_all_dead


def the_runner() -> Runner:
    """Return the runner of the test node."""
    assert runtime._runtime is not None
    assert runtime._runtime.runner is not None
    return runtime._runtime.runner


def execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@asynccontextmanager
async def workers_away(node: TestNode) -> AsyncIterator[None]:
    """Make the database refuse all queries about leases."""
    await node.do(execute, "ALTER TABLE chat_worker RENAME TO chat_worker_away")
    try:
        yield
    finally:
        await node.do(execute, "ALTER TABLE chat_worker_away RENAME TO chat_worker")


async def test_two_runners_share_the_work(node: TestNode, ana: User) -> None:
    """RUN-15: every message is answered once, whichever worker claims it."""
    other = Runner()
    await other.start()
    try:
        node.script(lambda request: [f"Re: {request.messages[-1].text}"])
        sessions = [await node.session(ana) for _ in range(12)]
        for session in sessions:
            await node.send(session, ana, "Hi")
        for session in sessions:
            await node.idle(session)
            await node.do(check_rest, session)
            assert (await node.shown(session))[2] == ("text", "complete", "Re: Hi")
        assert len(node.provider.requests) == 12
    finally:
        await other.stop()


async def test_stop_reaches_a_runner_whose_nudge_was_lost(node: TestNode, ana: User, settings: Settings) -> None:
    """RUN-07: if the wakeup of a stop in another process is lost, the heartbeat finds the state."""
    settings.LEASE_SECONDS = 0.5
    await node.restart()
    gate = Gate()
    node.script([["Once", gate]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await gate.reached()
    await node.do(SessionRun.objects.filter(pk=session.pk).update, state="cancelling")
    await node.idle(session)
    assert (await node.shown(session))[2] == ("text", "interrupted", "Once")


async def test_runner_that_slept_through_its_lease_cannot_write(node: TestNode, ana: User) -> None:
    """RUN-15: another worker has the session, so the old run ends and its further output is dropped."""
    gate = Gate()
    node.script([["Once", gate, " upon a time"], ["Twice."]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await gate.reached()
    await node.until(lambda: ChatMessage.objects.filter(session=session, status="streaming").exists())
    await node.do(declare_all_dead)
    other = await node.do(lease.register_worker)
    (claim,) = await node.do(lease.claim, other, 10)
    before = await node.shown(session)
    gate.open()
    async with asyncio.timeout(20):
        while node.provider.streaming:  # noqa: ASYNC110  # the old run ends by itself, or is ended
            await asyncio.sleep(0.01)
    assert await node.shown(session) == before
    assert claim.epoch == 2
    await node.do(lease.release_worker, other)
    await node.idle(session)
    await node.do(check_rest, session)
    assert (await node.shown(session))[2:] == [
        ("text", "interrupted", "Once"),
        ("text", "complete", RESUME_NOTE),
        ("text", "complete", "Twice."),
        ("turn_done", "complete", ""),
    ]


async def test_runner_that_lost_its_lease_restarts_under_a_new_name(
    node: TestNode, ana: User, settings: Settings
) -> None:
    """RUN-15: the runner takes back, under a new name, the sessions that no other worker has taken."""
    settings.LEASE_SECONDS = 0.5
    await node.restart()
    gate = Gate()
    node.script([["Once", gate], ["Twice."]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await gate.reached()
    await node.until(lambda: ChatMessage.objects.filter(session=session, status="streaming").exists())
    before = set(await node.do(lambda: list(Worker.objects.values_list("pk", flat=True))))
    await node.do(declare_all_dead)
    await node.idle(session)
    await node.do(check_rest, session)
    assert (await node.shown(session))[-2] == ("text", "complete", "Twice.")
    after = set(await node.do(lambda: list(Worker.objects.values_list("pk", flat=True))))
    assert len(after) == 1
    assert not before & after


async def test_run_continues_when_its_lease_is_renewed_late(node: TestNode, ana: User, settings: Settings) -> None:
    """RUN-15, LIVE-01: a run without a lease publishes nothing.

    If the lease is renewed late and no other worker has taken the session, the run continues and publishes the text
    that was held back.
    """
    settings.LEASE_SECONDS = 0.5
    await node.restart()
    gates = [Gate(), Gate(), Gate()]
    node.script([["Once ", gates[0], "upon ", gates[1], "a time", gates[2], "."]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await gates[0].reached()
    await node.until(lambda: ChatMessage.objects.filter(session=session, status="streaming").exists())
    listener = Listener(session)
    await listener.start()
    async with workers_away(node):
        async with asyncio.timeout(20):
            while time.monotonic() < the_runner()._safe_until:  # noqa: ASYNC110  # a moment has no event
                await asyncio.sleep(0.01)
        gates[0].open()
        await node.until(lambda: MessageDelta.objects.filter(text="upon ").exists())
        assert await listener.heard() == ""
    await listener.until(lambda text: text == "upon ")
    gates[1].open()
    gates[2].open()
    await node.idle(session)
    assert (await node.shown(session))[2:] == [
        ("text", "complete", "Once upon a time."),
        ("turn_done", "complete", ""),
    ]
    assert (await node.do(SessionRun.objects.get, pk=session.pk)).epoch == 1


async def test_session_that_cannot_be_run_is_tried_again(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-10, RUN-15: a session that failed because of a temporary problem is run again."""
    monkeypatch.setattr(runner, "GIVE_BACK_AFTER", 0.05)
    node.script(lambda request: [f"Re: {request.messages[-1].text}"])
    session = await node.session(ana)
    await node.do(refuse, "not_now", event="UPDATE OF done", table="chat_sessionrun")
    await node.send(session, ana, "Hi")
    await node.until(lambda: SessionRun.objects.get(pk=session.pk).epoch >= 3)
    await node.do(permit, "not_now")
    await node.idle(session)
    await node.do(check_rest, session)
    await node.send(session, ana, "Again")
    await node.idle(session)
    assert (await node.shown(session))[-2] == ("text", "complete", "Re: Again")


async def test_runner_outlives_a_database_that_is_away(
    node: TestNode, ana: User, caplog: pytest.LogCaptureFixture
) -> None:
    """RUN-15: the runner continues to look for work after a database outage."""
    node.script([["Hello"]])
    session = await node.session(ana)
    async with workers_away(node), asyncio.timeout(20):
        await node.do(send_message, session=session, author=ana, text="Hi")
        while "Could not claim" not in caplog.text:  # noqa: ASYNC110  # a log has no event
            await asyncio.sleep(0.01)
    await node.idle(session)
    assert (await node.shown(session))[2] == ("text", "complete", "Hello")


@pytest.mark.sqlite  # a missing table is the outage here; tests/postgres has PostgreSQL's
async def test_turn_waits_for_a_database_that_is_away(
    transactional_db: None, ana: User, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """RUN-10, RUN-15: the user gets an answer instead of an error after a database outage, and the claim is kept until
    then."""
    settings.RUNNER = "none"
    node, its_runner = TestNode(), Runner()
    node.script([["Hello"]])
    await node.start()
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await node.do(execute, "ALTER TABLE chat_session RENAME TO chat_session_away")
    try:
        await its_runner.start()
        async with asyncio.timeout(20):
            while "not available" not in caplog.text:  # noqa: ASYNC110  # a log has no event
                await asyncio.sleep(0.01)
    finally:
        await node.do(execute, "ALTER TABLE chat_session_away RENAME TO chat_session")
    await node.idle(session)
    assert (await node.shown(session))[2] == ("text", "complete", "Hello")
    assert (await node.do(SessionRun.objects.get, pk=session.pk)).epoch == 1
    await its_runner.stop()
    await node.stop()
    await node.threads.close()


async def test_stopped_node_leaves_nothing_behind(transactional_db: None, ana: User) -> None:
    """RUN-15: a node stopped in mid-text, during a tool call or at rest leaves no task, open stream, claim or
    worker."""
    before = asyncio.all_tasks()
    node, bench, gate = TestNode(), Workbench(), Gate()

    def reply(request: Request) -> Reply:
        return replies[request.messages[0].text]

    replies: dict[str, Reply] = {"text": ["Once", gate], "tool": work(1), "rest": ["Done."]}
    node.script(reply, tools=[bench.tool])
    await node.start()
    sessions = {name: await node.session(ana) for name in ("text", "tool", "rest")}
    for name, session in sessions.items():
        await node.send(session, ana, name)
    await gate.reached()
    await bench.begun(1)
    await node.idle(sessions["rest"])
    await node.stop()
    assert node.provider.streaming == 0
    assert asyncio.all_tasks() == before
    rows = await node.do(lambda: list(ChatMessage.objects.values_list("text", "status")))
    assert Counter(rows)["Once", "streaming"] + Counter(rows)["", "running"] == 2
    assert not await node.do(Worker.objects.exists)
    assert not await node.do(SessionRun.objects.filter(owner__isnull=False).exists)
    await node.threads.close()
