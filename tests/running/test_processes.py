"""Processes that die, freeze and wake: two real ones on one database."""

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
from tests.support.house import House
from tests.support.rest import check_rest

pytestmark = pytest.mark.server
# What a crash may lose: what is said within the writer's interval, and what a busy machine adds to it.
LOSS = 0.25 + 0.75


class Node:
    """A process of tests.support.node: what it told, line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said: list[tuple[float, str]] = []
        self.dug: list[str] = []

    async def until(self, *, words: int = 0, dug: int = 0) -> None:
        """Read until it is ready, has said so many words, or dug so often."""
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
        """End it in the middle of whatever it does, and hear its last words."""
        if self.process.returncode is None:
            self.process.kill()
        assert self.process.stdout is not None
        for line in (await self.process.stdout.read()).decode().splitlines(keepends=True):
            if line.endswith("\n"):
                self._heard(line)
        await self.process.wait()


class Town:
    """A house without a runner, which sends and looks, and the nodes that run its sessions."""

    def __init__(self) -> None:
        self.house = House()
        self.nodes: list[Node] = []

    async def node(self, *, lease_seconds: float = 1.5) -> Node:
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
        self.nodes.append(Node(process))
        await self.nodes[-1].until()
        return self.nodes[-1]

    @staticmethod
    def freeze(node: Node) -> None:
        """Stop a node. On SQLite between two transactions: inside one, it would keep the database locked."""
        with transaction.atomic():
            node.signal(signal.SIGSTOP)
            os.waitid(os.P_PID, node.process.pid, os.WSTOPPED)


@pytest_asyncio.fixture
async def town(transactional_db: None, settings: Settings) -> AsyncIterator[Town]:
    settings.RUNNER = "none"
    town = Town()
    await town.house.start()
    yield town
    for node in town.nodes:
        await node.kill()
    await town.house.stop()
    await town.house.threads.close()


async def kept(town: Town, session: Session) -> str:
    """The interrupted text of a session."""
    return (await town.house.do(ChatMessage.objects.get, session=session, status="interrupted", type="text")).text


async def test_killed_process_loses_a_moment_of_text_at_most(town: Town, ana: User) -> None:
    """RUN-15: kill -9 in mid-answer; the next process keeps what was said, and goes on from there."""
    node = await town.node()
    session = await town.house.session(ana)
    await town.house.send(session, ana, "Speak")
    await node.until(words=120)
    await node.kill()
    queued = await town.house.send(session, ana, "Still there?")
    assert queued.queued
    await town.node()
    await town.house.idle(session)
    text = await kept(town, session)
    assert "".join(said for _, said in node.said).startswith(text)
    length = 0
    for at, said in node.said:
        length += len(said)
        assert length <= len(text) or at > node.said[-1][0] - LOSS, f"{said!r} was said long before the end"
    shown = [row for row in await town.house.shown(session) if row[0] == "text"]
    assert [row[2] for row in shown[2:]] == [RESUME_NOTE, "And so on.", "Still there?", "Re: Still there?"]
    await town.house.do(check_rest, session)


@pytest.mark.sqlite  # where the lock is a file; on PostgreSQL it says nothing until a lease after the server's start
async def test_session_of_a_killed_process_does_not_wait_for_its_lease(town: Town, ana: User) -> None:
    """RUN-15: its lock is free, which is proof that it is dead."""
    node = await town.node(lease_seconds=600)
    session = await town.house.session(ana)
    await town.house.send(session, ana, "Speak")
    await node.until(words=60)
    await node.kill()
    await town.node(lease_seconds=600)
    await town.house.idle(session)
    assert (await town.house.shown(session))[-2] == ("text", "complete", "And so on.")
    assert await town.house.do(Worker.objects.count) == 1
    await town.house.do(check_rest, session)


async def test_killed_process_runs_no_tool_twice(town: Town, ana: User) -> None:
    """RUN-15: kill -9 in mid-tool; the model learns of it, and decides itself."""
    node = await town.node()
    session = await town.house.session(ana)
    await town.house.send(session, ana, "Dig")
    await node.until(dug=2)
    await node.kill()
    second = await town.node()
    await town.house.idle(session)
    assert (node.dug, second.dug) == (["here", "there"], [])
    shown = await town.house.shown(session)
    assert shown[2:5] == [("text", "complete", "Digging."), *[("tool_group", "interrupted", TOOL_LOST)] * 2]
    assert shown[-1] == ("turn_done", "complete", "")
    await town.house.do(check_rest, session)


async def test_process_that_wakes_from_the_dead_cannot_write(town: Town, ana: User) -> None:
    """RUN-15: frozen for longer than its lease, it is taken over; awake again it changes nothing, and serves on."""
    frozen = await town.node()
    session = await town.house.session(ana)
    await town.house.send(session, ana, "Speak")
    await frozen.until(words=60)
    before = set(await town.house.do(lambda: list(Worker.objects.values_list("pk", flat=True))))
    await town.house.do(town.freeze, frozen)
    await town.node()
    await town.house.idle(session)
    rows = await town.house.shown(session)
    frozen.signal(signal.SIGCONT)
    await town.house.until(lambda: not Worker.objects.filter(pk__in=before).exists())
    assert await town.house.shown(session) == rows
    await town.house.send(session, ana, "Who is there?")
    await town.house.idle(session)
    assert (await town.house.shown(session))[-2] == ("text", "complete", "Re: Who is there?")
    await town.house.do(check_rest, session)
