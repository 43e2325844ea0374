"""Web processes without a runner, and worker processes, on one PostgreSQL and one Redis."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from aiohttp import ClientSession

from chat.models import ChatMessage, Session, SessionRun, User
from chat.services.people import accounts
from tests.commands.process import Started
from tests.support.client import EventsClient
from tests.support.notify_socket import NotifySocket
from tests.support.redis import free_port
from tests.support.remote_viewer import RemoteViewer
from tests.support.rest import check_rest
from tests.support.team import Team

pytestmark = [pytest.mark.postgres, pytest.mark.server]


async def watch(team: Team, session: Session, user: User, web: Started) -> RemoteViewer:
    viewer = RemoteViewer(EventsClient(), session, user)
    await viewer.open(web.address, await team.node.do(accounts.sign_in_link, user=user))
    await viewer.until(lambda: viewer.client.caught_up)
    return viewer


def answer(viewer: RemoteViewer) -> str:
    return "".join(row["text"] for row in viewer.client.rows if row["type"] == "text" and row["role"] == "assistant")


def is_claimed_by(session: Session, worker: Started) -> bool:
    """Return whether a worker process runs a session."""
    run = SessionRun.objects.select_related("owner").get(pk=session.pk)
    return run.owner is not None and run.owner.label.endswith(f" {worker.process.pid}")


async def test_worker_answers_and_stops_for_a_web_process(team: Team, ana: User) -> None:
    """RUN-01, RUN-07, RUN-08, LIVE-01: a worker process runs and stops the agent for a page of another process."""
    session = await team.node.session(ana)
    web, _worker = await asyncio.gather(team.web("web"), team.worker("worker"))
    viewer = await watch(team, session, ana, web)
    viewer.send({"type": "send", "text": "slow", "key": "once"})
    await viewer.until(lambda: len(answer(viewer)) > 20)
    viewer.send({"type": "cancel", "ref": "stop"})
    await viewer.until(lambda: viewer.client.rows[-1]["type"] == "turn_done")
    await team.node.idle(session)
    await team.node.do(check_rest, session)
    status = await team.node.do(
        ChatMessage.objects.values_list("status", flat=True).get, session=session, role="assistant"
    )
    assert status == "interrupted"
    await viewer.leave()


async def start_answer(team: Team, user: User, **settings: str) -> tuple[RemoteViewer, Session, list[Started]]:
    """Start a web process and two workers; return a viewer of a long answer, and the workers, the claiming one
    first."""
    session = await team.node.session(user)
    web, *workers = await asyncio.gather(team.web("web"), *(team.worker(name, **settings) for name in ("one", "two")))
    viewer = await watch(team, session, user, web)
    viewer.send({"type": "send", "text": "markdown", "key": "once"})
    await viewer.until(lambda: len(answer(viewer)) > 20)
    if not await team.node.do(is_claimed_by, session, workers[0]):
        workers.reverse()
    return viewer, session, workers


async def test_rolling_restart_cuts_no_turn(team: Team, ana: User) -> None:
    """RUN-14, RUN-15: a worker that is asked to stop finishes its answer, and a new message goes to the other
    worker."""
    viewer, session, (old, new) = await start_answer(team, ana)
    other = await team.node.session(ana)
    old.process.send_signal(signal.SIGTERM)
    await team.node.send(other, ana, "echo hello")
    await team.node.idle(other)
    assert ("text", "complete", "hello") in await team.node.shown(other)
    assert await team.node.do(is_claimed_by, session, old)
    await viewer.until(lambda: viewer.client.rows[-1]["type"] == "turn_done")
    assert (await asyncio.to_thread(old.process.wait, 60)) == 0
    shown = [(type, status) for type, status, _ in await team.node.shown(session)]
    assert shown == [("turn_start", "complete"), ("text", "complete"), ("text", "complete"), ("turn_done", "complete")]
    assert new.process.poll() is None
    await viewer.leave()


async def test_turn_beyond_the_grace_is_continued_elsewhere(team: Team, ana: User) -> None:
    """RUN-15: a turn that does not end within GRACE_SECONDS is released immediately, not when the lease ends."""
    viewer, session, (old, new) = await start_answer(team, ana, GRACE_SECONDS="0.1", LEASE_SECONDS="60")
    old.process.send_signal(signal.SIGTERM)
    await team.node.until(lambda: is_claimed_by(session, new))
    await viewer.until(lambda: viewer.client.rows[-1]["type"] == "turn_done")
    await team.node.do(check_rest, session)
    await viewer.leave()


async def test_worker_answers_probes_until_it_ends(team: Team, ana: User) -> None:
    """OPS-01, OPS-02: a worker has no pages, but a port that reports its state."""
    address = f"http://127.0.0.1:{(port := free_port())}"
    session = await team.node.session(ana)
    web, worker = await asyncio.gather(team.web("web"), team.worker("worker", MONITORING_PORT=str(port)))
    viewer = await watch(team, session, ana, web)
    viewer.send({"type": "send", "text": "markdown", "key": "once"})
    await viewer.until(lambda: len(answer(viewer)) > 20)
    async with ClientSession() as client:

        async def get(path: str) -> str:
            async with client.get(f"{address}{path}") as response:
                return await response.text()

        assert (await get("/readyz")).startswith("ready\nstartup ok\ndraining ok\ndatabase ok\n")
        assert "\nparley_streams 1.0\n" in await get("/metrics")
        worker.process.send_signal(signal.SIGTERM)
        while (await get("/readyz")).startswith("ready"):
            pass
        assert await get("/readyz") == "not ready\nstartup ok\ndraining not ok\n"
        assert await get("/healthz") == "ok\n"
    await viewer.until(lambda: viewer.client.rows[-1]["type"] == "turn_done")
    assert (await asyncio.to_thread(worker.process.wait, 60)) == 0
    await viewer.leave()


async def test_worker_tells_systemd_when_it_is_ready_and_stops(team: Team, tmp_path: Path) -> None:
    """OPS-07: systemd counts the start as successful when the worker takes sessions."""
    manager = NotifySocket(tmp_path / "notify")
    worker = await team.worker("worker", NOTIFY_SOCKET=str(tmp_path / "notify"))
    assert await asyncio.to_thread(manager.next) == "READY=1"
    worker.process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(manager.next) == "STOPPING=1"
    manager.close()
