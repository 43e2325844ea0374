"""Two web servers and a worker on PostgreSQL and Redis behind the pages of a crowd."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from random import Random

import psycopg

from tests.commands.process import manage_forked
from tests.support.database import address
from tests.support.redis import Redis
from tests.team.members import Member

PATIENCE = 120


class TeamServers:
    """The processes of a team. `link` signs in its administrator."""

    def __init__(self, folder: Path, prepared: Path, redis: Redis, settings: dict[str, str]) -> None:
        self._shared = {
            "DATABASE_URL": address(),
            "REDIS_URL": redis.url,
            "SECRET_KEY": "the team's",
            "LEASE_SECONDS": "2",
            "GRACE_SECONDS": "3",
            "TITLES": "words",
            **settings,
        }
        on_the_web = {**self._shared, "RUNNER": "none"}
        self._webs = [Member(name, ["serve"], folder, prepared, on_the_web) for name in ("web1", "web2")]
        self._worker = Member("agents", ["runagents"], folder, prepared, self._shared)
        self._redis = redis
        self._folder = folder
        self.link = ""

    @property
    def origins(self) -> list[str]:
        return [web.address for web in self._webs]

    async def start(self) -> None:
        for member in (*self._webs, self._worker):
            await self._start(member)
        settings = {**self._shared, "PORT": str(self._webs[0].port)}
        printed = await asyncio.to_thread(manage_forked, "signinlink", data=self._folder / "web1", **settings)
        self.link = printed.stdout.strip()

    async def _start(self, member: Member) -> None:
        """Start a process and wait until it is ready."""
        before = self._readiness(member)
        member.start()
        async with asyncio.timeout(PATIENCE):
            while self._readiness(member) == before:  # noqa: ASYNC110  # the process writes a file
                await asyncio.sleep(0.05)

    @staticmethod
    def _readiness(member: Member) -> int:
        return member.log.read_text().count("is ready") if member.log.exists() else 0

    def kill(self) -> None:
        for member in (*self._webs, self._worker):
            member.kill()

    def rows(self, query: str, *values: object) -> list[tuple[object, ...]]:
        with psycopg.connect(self._shared["DATABASE_URL"]) as database:
            return database.execute(query.replace("?", "%s").encode(), values).fetchall()

    async def fail(self, chance: Random) -> str:
        """Kill or stop a process, or lose Redis."""
        if chance.random() < 0.2:
            self._redis.kill()
            await asyncio.sleep(chance.choice([0, 1]))
            await self._redis.start()
            return "redis"
        member = chance.choice([*self._webs, self._worker])
        how = chance.choice([signal.SIGKILL, signal.SIGTERM])
        await member.end(how)
        await self._start(member)
        return f"{member.name} {how.name}"
