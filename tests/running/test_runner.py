"""The runner: who it runs, when it steps back, and that nothing of it stays behind."""

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
from tests.support.house import House
from tests.support.listener import Listener
from tests.support.refusals import permit, refuse
from tests.support.rest import check_rest
from tests.support.workbench import Workbench, work
from tests.support.workers import declare_all_dead


def the_runner() -> Runner:
    """The house's own."""
    assert runtime._runtime is not None
    assert runtime._runtime.runner is not None
    return runtime._runtime.runner


def execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@asynccontextmanager
async def workers_away(house: House) -> AsyncIterator[None]:
    """A database that refuses everything that has to do with leases."""
    await house.do(execute, "ALTER TABLE chat_worker RENAME TO chat_worker_away")
    try:
        yield
    finally:
        await house.do(execute, "ALTER TABLE chat_worker_away RENAME TO chat_worker")


async def test_two_runners_share_the_work(house: House, ana: User) -> None:
    """RUN-15: every message is answered once, whichever worker claims it."""
    other = Runner()
    await other.start()
    try:
        house.script(lambda request: [f"Re: {request.messages[-1].text}"])
        sessions = [await house.session(ana) for _ in range(12)]
        for session in sessions:
            await house.send(session, ana, "Hi")
        for session in sessions:
            await house.idle(session)
            await house.do(check_rest, session)
            assert (await house.shown(session))[2] == ("text", "complete", "Re: Hi")
        assert len(house.provider.requests) == 12
    finally:
        await other.stop()


async def test_stop_reaches_a_runner_whose_nudge_was_lost(house: House, ana: User, settings: Settings) -> None:
    """RUN-07: from another process: the heartbeat sees the state."""
    settings.LEASE_SECONDS = 0.5
    await house.restart()
    gate = Gate()
    house.script([["Once", gate]])
    session = await house.session(ana)
    await house.send(session, ana, "Go")
    await gate.reached()
    await house.do(SessionRun.objects.filter(pk=session.pk).update, state="cancelling")
    await house.idle(session)
    assert (await house.shown(session))[2] == ("text", "interrupted", "Once")


async def test_runner_that_slept_through_its_lease_cannot_write(house: House, ana: User) -> None:
    """RUN-15: another worker has the session; the old run is cut, and what it still says goes nowhere."""
    gate = Gate()
    house.script([["Once", gate, " upon a time"], ["Twice."]])
    session = await house.session(ana)
    await house.send(session, ana, "Go")
    await gate.reached()
    await house.until(lambda: ChatMessage.objects.filter(session=session, status="streaming").exists())
    await house.do(declare_all_dead)
    other = await house.do(lease.register_worker)
    (claim,) = await house.do(lease.claim, other, 10)
    before = await house.shown(session)
    gate.open()
    async with asyncio.timeout(20):
        while house.provider.streaming:  # noqa: ASYNC110  # the old run ends by itself, or is ended
            await asyncio.sleep(0.01)
    assert await house.shown(session) == before
    assert claim.epoch == 2
    await house.do(lease.release_worker, other)
    await house.idle(session)
    await house.do(check_rest, session)
    assert (await house.shown(session))[2:] == [
        ("text", "interrupted", "Once"),
        ("text", "complete", RESUME_NOTE),
        ("text", "complete", "Twice."),
        ("turn_done", "complete", ""),
    ]


async def test_runner_that_lost_its_lease_begins_anew(house: House, ana: User, settings: Settings) -> None:
    """RUN-15: it takes back what no other worker has taken, under a new name."""
    settings.LEASE_SECONDS = 0.5
    await house.restart()
    gate = Gate()
    house.script([["Once", gate], ["Twice."]])
    session = await house.session(ana)
    await house.send(session, ana, "Go")
    await gate.reached()
    await house.until(lambda: ChatMessage.objects.filter(session=session, status="streaming").exists())
    before = set(await house.do(lambda: list(Worker.objects.values_list("pk", flat=True))))
    await house.do(declare_all_dead)
    await house.idle(session)
    await house.do(check_rest, session)
    assert (await house.shown(session))[-2] == ("text", "complete", "Twice.")
    after = set(await house.do(lambda: list(Worker.objects.values_list("pk", flat=True))))
    assert len(after) == 1
    assert not before & after


async def test_run_goes_on_when_its_lease_is_renewed_late(house: House, ana: User, settings: Settings) -> None:
    """RUN-15, LIVE-01: longer without a lease than it lasts, but no other worker has the session.

    Nothing is published in the meantime; then the text goes out that was held back, and the same run goes on.
    """
    settings.LEASE_SECONDS = 0.5
    await house.restart()
    gates = [Gate(), Gate(), Gate()]
    house.script([["Once ", gates[0], "upon ", gates[1], "a time", gates[2], "."]])
    session = await house.session(ana)
    await house.send(session, ana, "Go")
    await gates[0].reached()
    await house.until(lambda: ChatMessage.objects.filter(session=session, status="streaming").exists())
    listener = Listener(session)
    await listener.start()
    async with workers_away(house):
        async with asyncio.timeout(20):
            while time.monotonic() < the_runner()._safe_until:  # noqa: ASYNC110  # a moment has no event
                await asyncio.sleep(0.01)
        gates[0].open()
        await house.until(lambda: MessageDelta.objects.filter(text="upon ").exists())
        assert await listener.heard() == ""
    await listener.until(lambda text: text == "upon ")
    gates[1].open()
    gates[2].open()
    await house.idle(session)
    assert (await house.shown(session))[2:] == [
        ("text", "complete", "Once upon a time."),
        ("turn_done", "complete", ""),
    ]
    assert (await house.do(SessionRun.objects.get, pk=session.pk)).epoch == 1


async def test_sessions_of_a_runner_that_cut_its_runs_are_run_again(
    house: House, ana: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-15: too long without a lease: the runs are cut. When the database is back, the worker takes them up again."""
    settings.LEASE_SECONDS = 0.5
    monkeypatch.setattr(runner, "CANCEL_AFTER", 0.5)
    await house.restart()
    gate = Gate()
    house.script([["Once", gate], ["Twice."]])
    session = await house.session(ana)
    await house.send(session, ana, "Go")
    await gate.reached()
    async with workers_away(house), asyncio.timeout(20):
        while house.provider.streaming:  # noqa: ASYNC110  # until the run is dropped
            await asyncio.sleep(0.01)
    await house.idle(session)
    await house.do(check_rest, session)
    assert (await house.shown(session))[-2] == ("text", "complete", "Twice.")


async def test_session_that_cannot_be_run_is_tried_again(
    house: House, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-10, RUN-15: no session is stuck for good because of what was wrong for a while."""
    monkeypatch.setattr(runner, "GIVE_BACK_AFTER", 0.05)
    house.script(lambda request: [f"Re: {request.messages[-1].text}"])
    session = await house.session(ana)
    await house.do(refuse, "not_now", event="UPDATE OF done", table="chat_sessionrun")
    await house.send(session, ana, "Hi")
    await house.until(lambda: SessionRun.objects.get(pk=session.pk).epoch >= 3)
    await house.do(permit, "not_now")
    await house.idle(session)
    await house.do(check_rest, session)
    await house.send(session, ana, "Again")
    await house.idle(session)
    assert (await house.shown(session))[-2] == ("text", "complete", "Re: Again")


async def test_runner_outlives_a_database_that_is_away(
    house: House, ana: User, caplog: pytest.LogCaptureFixture
) -> None:
    """RUN-15: it goes on looking for work."""
    house.script([["Hello"]])
    session = await house.session(ana)
    async with workers_away(house), asyncio.timeout(20):
        await house.send(session, ana, "Hi")
        while "Cannot claim" not in caplog.text:  # noqa: ASYNC110  # a log has no event
            await asyncio.sleep(0.01)
    await house.idle(session)
    assert (await house.shown(session))[2] == ("text", "complete", "Hello")


@pytest.mark.sqlite  # where a table that is gone is a database that is away; PostgreSQL's own: tests/postgres
async def test_turn_waits_for_a_database_that_is_away(
    transactional_db: None, ana: User, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """RUN-10, RUN-15: what a person gets is an answer, not an error; the claim is kept in the meantime."""
    settings.RUNNER = "none"
    house, its_runner = House(), Runner()
    house.script([["Hello"]])
    await house.start()
    session = await house.session(ana)
    await house.send(session, ana, "Hi")
    await house.do(execute, "ALTER TABLE chat_session RENAME TO chat_session_away")
    try:
        await its_runner.start()
        async with asyncio.timeout(20):
            while "not available" not in caplog.text:  # noqa: ASYNC110  # a log has no event
                await asyncio.sleep(0.01)
    finally:
        await house.do(execute, "ALTER TABLE chat_session_away RENAME TO chat_session")
    await house.idle(session)
    assert (await house.shown(session))[2] == ("text", "complete", "Hello")
    assert (await house.do(SessionRun.objects.get, pk=session.pk)).epoch == 1
    await its_runner.stop()
    await house.stop()
    await house.threads.close()


async def test_stopped_node_leaves_nothing_behind(transactional_db: None, ana: User) -> None:
    """RUN-15: in mid-text, in mid-tool, at rest: no task, no open stream, no claim, no worker."""
    before = asyncio.all_tasks()
    house, bench, gate = House(), Workbench(), Gate()

    def reply(request: Request) -> Reply:
        return replies[request.messages[0].text]

    replies: dict[str, Reply] = {"text": ["Once", gate], "tool": work(1), "rest": ["Done."]}
    house.script(reply, tools=[bench.tool])
    await house.start()
    sessions = {name: await house.session(ana) for name in ("text", "tool", "rest")}
    for name, session in sessions.items():
        await house.send(session, ana, name)
    await gate.reached()
    await bench.begun(1)
    await house.idle(sessions["rest"])
    await house.stop()
    assert house.provider.streaming == 0
    assert asyncio.all_tasks() == before
    rows = await house.do(lambda: list(ChatMessage.objects.values_list("text", "status")))
    assert Counter(rows)["Once", "streaming"] + Counter(rows)["", "running"] == 2
    assert not await house.do(Worker.objects.exists)
    assert not await house.do(SessionRun.objects.filter(owner__isnull=False).exists)
    await house.threads.close()
