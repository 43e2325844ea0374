"""Processes that are killed, frozen and resumed: two real ones on one database."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from django.conf import settings as django_settings
from django.db import transaction
from pytest_django.fixtures import Settings

from chat.models import ChatMessage, Session, User, Worker
from chat.projections.context import TOOL_LOST
from chat.runs.reducer import RESUME_NOTE
from tests.support.database import address
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode

pytestmark = pytest.mark.server
# The time in seconds whose text a crash may lose: the writer's interval, plus the delay of a busy machine.
LOSS = 0.25 + 0.75


class NodeProcess:
    """A process that runs tests.support.node; its output is read line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said: list[tuple[float, str]] = []
        self.dug: list[str] = []

    async def until(self, *, words: int = 0, dug: int = 0) -> None:
        """Read lines until the process reports that it is ready, or the wanted number of words or tool runs."""
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            while words > len(self.said) or dug > len(self.dug) or not (words or dug):
                line = (await self.process.stdout.readline()).decode()
                assert line, "the node has ended"
                if line.startswith("ready"):
                    return
                self._heard(line)

    def _heard(self, line: str) -> None:
        kind, _, rest = line.rstrip("\n").partition(" ")
        if kind == "dug":
            self.dug.append(rest)
        elif kind == "said":
            at, _, text = rest.partition(" ")
            self.said.append((float(at), text))

    def signal(self, what: signal.Signals) -> None:
        self.process.send_signal(what)

    async def kill(self) -> None:
        """Kill the process at any point and read the rest of its output."""
        if self.process.returncode is None:
            self.process.kill()
        assert self.process.stdout is not None
        for line in (await self.process.stdout.read()).decode().splitlines(keepends=True):
            if line.endswith("\n"):
                self._heard(line)
        await self.process.wait()


class Cluster:
    """A node without a runner, which sends and reads, and the processes that run its sessions."""

    def __init__(self) -> None:
        self.node = TestNode()
        self.processes: list[NodeProcess] = []

    async def start(self, *, lease_seconds: float = 1.5) -> NodeProcess:
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "DATABASE_URL": address(),
            "RUNNER": "embedded",
            "LEASE_SECONDS": str(lease_seconds),
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.support.node",
            cwd=Path(django_settings.BASE_DIR),
            env=environment,
            stdout=asyncio.subprocess.PIPE,
        )
        self.processes.append(NodeProcess(process))
        await self.processes[-1].until()
        return self.processes[-1]

    @staticmethod
    def freeze(process: NodeProcess) -> None:
        """Suspend a node.
        On SQLite, wait until it is between two transactions, because inside one it would keep the database locked.
        """
        with transaction.atomic():
            process.signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.process.pid, os.WSTOPPED)


@pytest_asyncio.fixture
async def cluster(transactional_db: None, settings: Settings) -> AsyncIterator[Cluster]:
    settings.RUNNER = "none"
    cluster = Cluster()
    await cluster.node.start()
    yield cluster
    for process in cluster.processes:
        await process.kill()
    await cluster.node.stop()
    await cluster.node.threads.close()


async def kept(cluster: Cluster, session: Session) -> str:
    """Return the interrupted text of a session."""
    return (await cluster.node.do(ChatMessage.objects.get, session=session, status="interrupted", type="text")).text


async def test_killed_process_loses_a_moment_of_text_at_most(cluster: Cluster, ana: User) -> None:
    """RUN-15: after kill -9 in mid-answer, only text of the last moment is lost, and the next process continues from
    there."""
    process = await cluster.start()
    session = await cluster.node.session(ana)
    await cluster.node.send(session, ana, "Speak")
    await process.until(words=120)
    await process.kill()
    queued = await cluster.node.send(session, ana, "Still there?")
    assert queued.queued
    await cluster.start()
    await cluster.node.idle(session)
    text = await kept(cluster, session)
    assert "".join(said for _, said in process.said).startswith(text)
    length = 0
    for at, said in process.said:
        length += len(said)
        assert length <= len(text) or at > process.said[-1][0] - LOSS, f"{said!r} was said long before the end"
    shown = [row for row in await cluster.node.shown(session) if row[0] == "text"]
    assert [row[2] for row in shown[2:]] == [RESUME_NOTE, "And so on.", "Still there?", "Re: Still there?"]
    await cluster.node.do(check_rest, session)


@pytest.mark.sqlite  # the lock is a file; on PostgreSQL, locks prove nothing until one lease after the server's start
async def test_session_of_a_killed_process_does_not_wait_for_its_lease(cluster: Cluster, ana: User) -> None:
    """RUN-15: the free lock of a killed process proves that it is dead, so its sessions are taken over before the lease
    ends."""
    process = await cluster.start(lease_seconds=600)
    session = await cluster.node.session(ana)
    await cluster.node.send(session, ana, "Speak")
    await process.until(words=60)
    await process.kill()
    await cluster.start(lease_seconds=600)
    await cluster.node.idle(session)
    assert (await cluster.node.shown(session))[-2] == ("text", "complete", "And so on.")
    assert await cluster.node.do(Worker.objects.count) == 1
    await cluster.node.do(check_rest, session)


async def test_killed_process_runs_no_tool_twice(cluster: Cluster, ana: User) -> None:
    """RUN-15: after kill -9 during a tool call, the call is not repeated. The model is informed and decides itself."""
    process = await cluster.start()
    session = await cluster.node.session(ana)
    await cluster.node.send(session, ana, "Dig")
    await process.until(dug=2)
    await process.kill()
    second = await cluster.start()
    await cluster.node.idle(session)
    assert (process.dug, second.dug) == (["here", "there"], [])
    shown = await cluster.node.shown(session)
    assert shown[2:5] == [("text", "complete", "Digging."), *[("tool_group", "interrupted", TOOL_LOST)] * 2]
    assert shown[-1] == ("turn_done", "complete", "")
    await cluster.node.do(check_rest, session)


async def test_process_that_wakes_from_the_dead_cannot_write(cluster: Cluster, ana: User) -> None:
    """RUN-15: a process that was frozen past its lease and resumed cannot write to the lost session, and serves further
    sessions."""
    frozen = await cluster.start()
    session = await cluster.node.session(ana)
    await cluster.node.send(session, ana, "Speak")
    await frozen.until(words=60)
    before = set(await cluster.node.do(lambda: list(Worker.objects.values_list("pk", flat=True))))
    await cluster.node.do(cluster.freeze, frozen)
    await cluster.start()
    await cluster.node.idle(session)
    rows = await cluster.node.shown(session)
    frozen.signal(signal.SIGCONT)
    await cluster.node.until(lambda: not Worker.objects.filter(pk__in=before).exists())
    assert await cluster.node.shown(session) == rows
    await cluster.node.send(session, ana, "Who is there?")
    await cluster.node.idle(session)
    assert (await cluster.node.shown(session))[-2] == ("text", "complete", "Re: Who is there?")
    await cluster.node.do(check_rest, session)
