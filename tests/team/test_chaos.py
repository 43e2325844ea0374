"""Two web processes and three workers on PostgreSQL and Redis, which a test kills one after another."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random

import pytest
from django.db import connection

from agents.registry import load
from chat import agents_setup
from chat.models import ChatMessage, Session, SessionRun, User
from tests.api.asking import token_of
from tests.live.states import assert_shows, is_at
from tests.support.database import address, maintenance
from tests.support.effort import cases
from tests.support.redis import Redis
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode
from tests.team.members import Member
from tests.team.people import Teammate

pytestmark = [pytest.mark.postgres, pytest.mark.server]

STRIKES = int(os.environ.get("PARLEY_STRIKES", cases(30)))
SESSIONS = int(os.environ.get("PARLEY_CHAOS_SESSIONS", "12"))
SEED = int(os.environ.get("PARLEY_CHAOS_SEED", "1"))
LEASE = float(os.environ.get("PARLEY_CHAOS_LEASE", "2"))
PATIENCE = 120.0


class Team:
    """The processes, their shared services, and the faults that can happen to them."""

    def __init__(self, folder: Path, prepared: Path, redis: Redis, chance: Random) -> None:
        shared = {
            "DATABASE_URL": address(),
            "REDIS_URL": redis.url,
            "SECRET_KEY": "the team's",
            "LEASE_SECONDS": str(LEASE),
            "GRACE_SECONDS": "3",
            "TITLES": "words",
            "QUOTAS": "tokens_per_day=0",  # a thousand strikes use a hundred million tokens
        }
        self.webs = [
            Member(name, ["serve"], folder, prepared, {**shared, "RUNNER": "none"}) for name in ("web1", "web2")
        ]
        self.workers = [
            Member(name, ["runagents"], folder, prepared, shared) for name in ("agents1", "agents2", "agents3")
        ]
        self.node = TestNode()
        agents_setup.install(load(None, {}))  # the demo agent, as in the processes
        self.takeovers: list[float] = []
        self.strikes: Counter[str] = Counter()
        self._redis = redis
        self._chance = chance
        self._watching: list[asyncio.Task[None]] = []

    def start(self) -> None:
        for member in (*self.webs, *self.workers):
            member.start()

    async def close(self) -> None:
        for task in self._watching:
            task.cancel()
        for member in (*self.webs, *self.workers):
            await asyncio.to_thread(member.kill)
        await self.node.threads.close()

    async def strike(self) -> None:
        """Let one fault happen."""
        kinds: list[tuple[Callable[[], Awaitable[None]], int]] = [
            (self.kill_worker, 6),
            (self.freeze_worker, 2),
            (self.drain_worker, 3),
            (self.kill_web, 3),
            (self.restart_web, 2),
            (self.lose_redis, 1),
            (self.flush_redis, 1),
            (self.cut_database, 2),
        ]
        (kind,) = self._chance.choices([each for each, _ in kinds], [weight for _, weight in kinds])
        self.strikes[kind.__name__] += 1
        await kind()

    async def kill_worker(self) -> None:
        worker = self._chance.choice(self.workers)
        claimed = await self.node.threads.run_with_retry(claims_of, worker)
        killed_at = time.monotonic()
        await worker.end(signal.SIGKILL)
        self._watching += [asyncio.create_task(self._watch(claim, killed_at)) for claim in claimed]
        worker.start()

    async def freeze_worker(self) -> None:
        """Freeze a worker for longer than its lease: others take its sessions, and it must not write afterwards."""
        worker = self._chance.choice(self.workers)
        worker.send_signal(signal.SIGSTOP)
        await asyncio.sleep(LEASE + 1)
        worker.send_signal(signal.SIGCONT)

    async def drain_worker(self) -> None:
        await self._chance.choice(self.workers).restart(signal.SIGTERM)

    async def kill_web(self) -> None:
        await self._chance.choice(self.webs).restart(signal.SIGKILL)

    async def restart_web(self) -> None:
        await self._chance.choice(self.webs).restart(signal.SIGTERM)

    async def lose_redis(self) -> None:
        self._redis.kill()
        await asyncio.sleep(2)
        await self._redis.start()

    async def flush_redis(self) -> None:
        await self._redis.command("FLUSHALL")

    async def cut_database(self) -> None:
        await asyncio.to_thread(cut_connections)

    async def _watch(self, claim: tuple[str, int], killed_at: float) -> None:
        """Record when another worker has taken over a killed one's sessions."""
        await self.until(lambda: not is_claimed(*claim))
        self.takeovers.append(time.monotonic() - killed_at)

    async def taken_over(self) -> None:
        """Wait until a killed worker owns no session."""
        await asyncio.gather(*self._watching)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition on the rows is true, also during outages of the database."""
        async with asyncio.timeout(PATIENCE):
            while not await self.node.threads.run_with_retry(condition):  # noqa: ASYNC110  # others change the rows
                await asyncio.sleep(0.05)


def claims_of(worker: Member) -> list[tuple[str, int]]:
    """Return the sessions that a process runs, with the epochs of its claims."""
    runs = SessionRun.objects.filter(owner__label__endswith=f" {worker.pid}")
    return list(runs.values_list("pk", "epoch"))


def is_claimed(session_id: str, epoch: int) -> bool:
    return SessionRun.objects.filter(pk=session_id, epoch=epoch, owner__isnull=False).exists()


def cut_connections() -> None:
    """Cut all connections to the tests' database, like a restart of PostgreSQL."""
    with maintenance() as server:
        name = connection.settings_dict["NAME"]
        server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])


@asynccontextmanager
async def connected(people: list[Teammate]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(person.stay_connected()) for person in people]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
def _own_connection(transactional_db: None) -> Iterator[None]:
    """Test connections that are closed afterwards: they were cut too, and new ones have to delete the test's rows."""
    yield
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL's alone


@pytest.mark.usefixtures("_own_connection")
async def test_nothing_is_lost_or_doubled_whatever_dies(
    prepared: Path, tmp_path: Path, redis: Redis, ana: User
) -> None:
    """RUN-14, RUN-15, LIVE-01, LIVE-02, MSG-02, MSG-03: workers, web processes, Redis and connections fail at random.

    Each acknowledged message is stored once, each turn ends once, each tool call has its result, nothing runs at rest,
    and every client's state equals the rows.
    """
    chance = Random(SEED)
    team = Team(tmp_path, prepared, redis, chance)
    try:
        sessions = [await team.node.session(ana) for _ in range(SESSIONS)]
        token = await team.node.do(token_of, ana)
        team.start()
        addresses = [web.address for web in team.webs]
        people = [Teammate(each, ana, token, addresses, Random(chance.random())) for each in sessions]
        async with connected(people):
            await asyncio.gather(*(person.say(f"{person.session.pk}-first", "echo hello") for person in people))
            is_over = asyncio.Event()
            talks = [asyncio.create_task(person.talk(is_over)) for person in people]
            for _ in range(STRIKES):
                await team.strike()
                await asyncio.sleep(chance.uniform(0.2, 2))
            is_over.set()
            await asyncio.wait_for(asyncio.gather(*talks), PATIENCE)
            await asyncio.wait_for(team.taken_over(), PATIENCE)
            for person in people:
                await rests(team, person)
        assert [person.refusals for person in people if person.refusals] == []
        report(team, people)
    except BaseException:
        for member in (*team.webs, *team.workers):
            print(f"== {member.name}\n{member.log.read_text()[-3000:]}")  # noqa: T201  # pytest shows it with the failure
        raise
    finally:
        await team.close()


async def rests(team: Team, person: Teammate) -> None:
    """Wait until a session is idle, and compare the acknowledged messages and the client's state with its rows."""
    node, session = team.node, person.session
    await team.until(lambda: is_idle(session))
    await node.do(check_rest, session)
    kept = Counter(await node.do(keys_of, session))
    assert kept == Counter(person.acknowledged.items())
    truth = await node.snapshot(session)
    async with asyncio.timeout(PATIENCE):
        while not is_at(person.client, truth):
            with suppress(TimeoutError):
                await person.until(lambda: is_at(person.client, truth))
    assert_shows(person.client, truth)


def is_idle(session: Session) -> bool:
    return SessionRun.objects.filter(pk=session.pk, state="idle", owner__isnull=True).exists()


def keys_of(session: Session) -> list[tuple[str | None, str]]:
    """Return the keys and texts of the users' messages."""
    rows = ChatMessage.objects.filter(session=session, idempotency_key__isnull=False, removed_at__isnull=True)
    return list(rows.values_list("idempotency_key", "text"))


def report(team: Team, people: list[Teammate]) -> None:
    times = sorted(team.takeovers)
    sent = sum(len(person.acknowledged) for person in people)
    strikes = ", ".join(f"{name} {count}" for name, count in team.strikes.most_common())
    print(f"\n{sum(team.strikes.values())} strikes: {strikes}")  # noqa: T201  # `make chaos` shows it
    print(f"{sent} messages acknowledged, 0 lost, 0 doubled")  # noqa: T201  # likewise
    if times:
        middle, last = times[len(times) // 2], times[-1]
        print(f"takeover of {len(times)} sessions: p50 {middle:.2f} s, max {last:.2f} s")  # noqa: T201  # likewise
