"""A PostgreSQL server that dies and is replaced by its replica at the same address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio

from chat.models import ChatMessage, Session, SessionRun, User
from chat.services.people import accounts
from tests.live.states import assert_shows, is_at
from tests.postgres.test_workers import answer, watch
from tests.support.own_postgres import OwnPostgres, address_of, in_front_of, looking_at, own_servers
from tests.support.redis import Redis
from tests.support.remote_viewer import RemoteViewer
from tests.support.rest import check_rest
from tests.support.silent_proxy import SilentProxy
from tests.support.team import Team
from tests.support.testing_node import person

pytestmark = [pytest.mark.postgres, pytest.mark.server]


@dataclass
class Place:
    """Processes, and the servers behind their address. The replica copies through `link`."""

    team: Team
    primary: OwnPostgres
    replica: OwnPostgres
    address: SilentProxy
    link: SilentProxy

    async def follow(self) -> None:
        """Start the replica, and acknowledge no commit that it lacks."""
        await asyncio.to_thread(self.replica.copy, self.link)
        await asyncio.to_thread(self.replica.start)
        await asyncio.to_thread(self._wait_for_replica, "*")

    async def lag(self) -> None:
        """Cut the replica off: it gets nothing more, and commits do not wait for it."""
        await asyncio.to_thread(self._wait_for_replica, "")
        self.link.lose()

    async def fail_over(self) -> None:
        await asyncio.to_thread(self.primary.kill)
        self.address.target = self.replica.socket
        await asyncio.to_thread(self.replica.promote)

    def _wait_for_replica(self, names: str) -> None:
        with psycopg.connect(address_of(self.address), autocommit=True) as server:
            server.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
            server.execute("SELECT pg_reload_conf()")
            while server.execute("SHOW synchronous_standby_names").fetchone() != (names,):
                pass


@pytest_asyncio.fixture
async def place(prepared: Path, tmp_path: Path, redis: Redis, db: None) -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        primary, replica = stack.enter_context(own_servers(2, synchronous_commit="on"))
        await asyncio.to_thread(primary.create)
        await asyncio.to_thread(primary.start)
        address = await stack.enter_async_context(in_front_of(primary))
        link = await stack.enter_async_context(in_front_of(primary))
        stack.enter_context(looking_at(address))
        team = Team(prepared, tmp_path, address_of(address), redis.url)
        stack.push_async_callback(team.close)
        yield Place(team, primary, replica, address, link)


async def begin(team: Team, *workers: str) -> tuple[RemoteViewer, Session, User]:
    """Start a web process and workers, and open a new session as a user."""
    web = await team.web("web")
    await asyncio.gather(*(team.worker(name) for name in workers))
    ana = await team.node.do(person, "Ana")
    session = await team.node.session(ana)
    return await watch(team, session, ana, web), session, ana


async def at_rest(team: Team, session: Session) -> list[str]:
    """Wait until a session is idle, and return the texts of users in it."""
    async with asyncio.timeout(60):
        while not await team.node.threads.run_with_retry(is_idle, session):  # noqa: ASYNC110  # others change the rows
            await asyncio.sleep(0.05)
    await team.node.do(check_rest, session)
    return [text for type, status, text in await team.node.shown(session) if type == "text" and status == "complete"]


def is_idle(session: Session) -> bool:
    return SessionRun.objects.filter(pk=session.pk, state="idle", owner=None).exists()


async def test_failover_loses_nothing_that_the_replica_has(place: Place) -> None:
    """RUN-15, MSG-03: the turn and the queue continue on the new primary, and viewers see its rows."""
    team = place.team
    viewer, session, _ana = await begin(team, "one", "two")
    await place.follow()
    viewer.send({"type": "send", "text": "slow", "key": "once"})
    await viewer.until(lambda: len(answer(viewer)) > 20)
    viewer.send({"type": "send", "text": "echo later", "key": "twice", "ref": "twice"})
    await viewer.until(lambda: any(frame.get("ref") == "twice" for frame in viewer.frames))
    await place.fail_over()
    said = await at_rest(team, session)
    assert said[0] == "slow"
    assert said[-2:] == ["echo later", "later"]
    truth = await team.node.snapshot(session)
    await viewer.until(lambda: is_at(viewer.client, truth))
    assert_shows(viewer.client, truth)
    await viewer.leave()


async def test_viewers_forget_what_a_failover_has_lost(place: Place) -> None:
    """RUN-15, LIVE-02: if the replica lacks the last commits, a lost turn ends, and pages stop showing it."""
    team = place.team
    viewer, session, ana = await begin(team, "one")
    viewer.send({"type": "send", "text": "echo kept", "key": "once"})
    await at_rest_after(team, session, "kept")
    await place.follow()
    await place.lag()
    viewer.send({"type": "send", "text": "slow", "key": "twice"})
    await viewer.until(lambda: len(answer(viewer)) > 20)
    await place.fail_over()
    assert await at_rest(team, session) == ["echo kept", "kept"]
    truth = await team.node.snapshot(session)
    await viewer.ended()
    await viewer.leave()
    await viewer.open(viewer.address, await team.node.do(accounts.sign_in_link, user=ana))
    await viewer.until(lambda: is_at(viewer.client, truth))
    assert_shows(viewer.client, truth)
    viewer.send({"type": "send", "text": "echo again", "key": "thrice"})
    await at_rest_after(team, session, "again")
    truth = await team.node.snapshot(session)
    await viewer.until(lambda: is_at(viewer.client, truth))
    assert_shows(viewer.client, truth)
    await viewer.leave()


async def at_rest_after(team: Team, session: Session, text: str) -> None:
    """Wait until the agent has answered and the session is idle."""
    await team.node.until(lambda: ChatMessage.objects.filter(session=session, role="assistant", text=text).exists())
    await at_rest(team, session)
