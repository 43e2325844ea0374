"""Servers that many tests use one after another. Before each test, the rows are reset to those of the first start."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from tests.support.prepared import copy
from tests.support.server import ForkedServer, Server
from tests.wire.server import WireServer

# No limits, because every test signs in, and many create accounts, from the same address.
LIMITS = "sign_ins=0, links=0, joins=0, passkeys=0"
IDLE_SECONDS = 10
# The number of servers that keep running. Idle servers renew their leases: twenty would take a sixth of a processor.
KEPT = 2
# Tables that the running server writes itself, or that triggers and migrations maintain.
LEFT_ALONE = ("chat_joblease", "chat_searchdoc", "chat_worker", "django_migrations")
TABLES = "SELECT name FROM start.sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"


class SharedServer(ForkedServer):
    """A server that each test finds as freshly started, with its administrator and the link of the first start."""

    def __init__(self, data: Path, **environment: str) -> None:
        super().__init__(data, **environment)
        self._database = data / "parley.sqlite3"
        self._at_start = data / "start.sqlite3"
        self._first_link = ""

    def rewind(self) -> None:
        """Wait until no agent works, and reset the rows. Start the server if it is not running."""
        if not self._first_link:
            self.start()
            self._first_link = self.link
            with closing(sqlite3.connect(self._database)) as database:
                database.execute("VACUUM INTO ?", [str(self._at_start)])
            return
        if not (self.is_running and self._is_idle()):
            self.kill()
        with closing(sqlite3.connect(self._database, timeout=IDLE_SECONDS)) as database:
            self._set_back(database)
        if self.is_running:
            self.link = self._first_link
        else:
            self.start()  # its new link replaces the first one

    def _is_idle(self) -> bool:
        """Wait until all turns have ended. Return False if one does not end within IDLE_SECONDS."""
        until = time.monotonic() + IDLE_SECONDS
        with closing(sqlite3.connect(self._database, timeout=IDLE_SECONDS, isolation_level=None)) as database:
            while database.execute("SELECT 1 FROM chat_sessionrun WHERE state <> 'idle'").fetchone():
                if time.monotonic() > until:
                    return False
                time.sleep(0.02)
        return True

    def _set_back(self, database: sqlite3.Connection) -> None:
        database.execute("PRAGMA synchronous = OFF")
        database.execute("ATTACH ? AS start", [str(self._at_start)])
        names = [name for (name,) in database.execute(TABLES)]
        with database:
            for name in names:
                # Triggers update the search index and its tables.
                if name not in LEFT_ALONE and not name.startswith("chat_search"):
                    database.execute(f"DELETE FROM main.{name}")  # noqa: S608  # our own
                    database.execute(f"INSERT INTO main.{name} SELECT * FROM start.{name}")  # noqa: S608  # likewise


class SharedServers:
    """The shared servers of a test process, one per configuration, and the model server that all of them use.

    The servers of the last KEPT configurations keep running. The others are started again when they are needed.
    """

    def __init__(self, prepared: Path, folder: Path, model: WireServer) -> None:
        self._prepared = prepared
        self._folder = folder
        self._model = model
        self._servers: dict[tuple[str, ...], SharedServer] = {}  # ordered by their last use
        self._count = 0

    @asynccontextmanager
    async def use(self, config: str, **environment: str) -> AsyncIterator[Server]:
        """Yield a freshly reset server with this configuration file, in which `{url}` is the model server's address."""
        key = (config, *(f"{name}={value}" for name, value in sorted(environment.items())))
        server = self._servers.pop(key, None) or self._create(config, environment)
        self._servers[key] = server
        for unused in list(self._servers)[:-KEPT]:
            await asyncio.to_thread(self._servers.pop(unused).stop)
        await asyncio.to_thread(server.rewind)
        self._model.open()
        try:
            yield server
        finally:
            self._model.close()

    def _create(self, config: str, environment: dict[str, str]) -> SharedServer:
        self._count += 1
        data = copy(self._prepared, self._folder / f"data{self._count}")
        file = data / "parley.toml"
        file.write_text(config.format(url=self._model.openai_url))
        return SharedServer(data, PARLEY_CONFIG=str(file), LIMITS=LIMITS, **environment)

    async def stop(self) -> None:
        for server in self._servers.values():
            await asyncio.to_thread(server.stop)
