"""Several Parley processes on one PostgreSQL and one Redis."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path

from agents.registry import load
from chat import agents_setup
from tests.commands.process import Started, serving
from tests.support.prepared import copy
from tests.support.testing_node import TestNode


class Team:
    """Servers with shared settings, each with its own folder, and `node`, which reads their rows."""

    def __init__(self, prepared: Path, folder: Path, database: str, redis: str) -> None:
        """Prepare the team. `database` and `redis` are addresses."""
        self.node = TestNode()
        agents_setup.install(load(None, {}))  # the servers' demo agent, which needs no script
        self._prepared = prepared
        self._folder = folder
        self._shared = {"DATABASE_URL": database, "REDIS_URL": redis, "SECRET_KEY": "the team's"}
        self._servers = ExitStack()

    async def server(self, name: str, **settings: str) -> Started:
        """Start a process that serves pages and runs agents, unless its settings forbid that."""
        return await self._start(name, ready="Parley is ready", **settings)

    async def _start(self, name: str, *command: str, ready: str, **settings: str) -> Started:
        settings = {**self._shared, "LEASE_SECONDS": "2", "TITLES": "words", **settings}
        data = copy(self._prepared, self._folder / name)  # compressing the static files takes most of a first start
        starting = serving(data, *command, ready=ready, **settings)
        return await asyncio.to_thread(self._servers.enter_context, starting)

    async def web(self, name: str) -> Started:
        """Start a process that serves pages but runs no agents."""
        return await self.server(name, RUNNER="none")

    async def worker(self, name: str, **settings: str) -> Started:
        """Start a process that only runs agents."""
        return await self._start(name, "manage.py", "runagents", ready="is ready", **settings)

    async def close(self) -> None:
        await asyncio.to_thread(self._servers.close)
        await self.node.threads.close()
