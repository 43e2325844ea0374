"""Fixtures for both servers, each started once, with low limits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
import pytest_asyncio
from aiohttp import ClientSession, ClientWebSocketResponse, CookieJar

from tests.support.entering import enter
from tests.support.prepared import copy
from tests.support.server import Server

SERVERS = ("uvicorn", "daphne")
CONNECTIONS_PER_ADDRESS = 80
SOCKETS_PER_USER = 10
STREAMS_PER_USER = 2
MAX_MESSAGE_CHARS = 700_000
LIMITS = {
    "CONNECTIONS_PER_ADDRESS": str(CONNECTIONS_PER_ADDRESS),
    "SOCKETS_PER_USER": str(SOCKETS_PER_USER),
    "STREAMS_PER_USER": str(STREAMS_PER_USER),
    "MAX_MESSAGE_CHARS": str(MAX_MESSAGE_CHARS),
    "MAX_ATTACHMENT_MB": "2",
}


class Running(Server):
    """A running server, and the data for signing in as its administrator."""

    cookies: dict[str, str]

    def memory(self) -> int:
        """Return the resident bytes of the server's process."""
        return int(psutil.Process(self.pid).memory_info().rss)


@dataclass
class Person:
    """A user who is signed in to a server."""

    server: Running
    http: ClientSession

    async def session(self) -> str:
        """Create a session and return its id."""
        async with self.http.post("/api/sessions", json={"title": "Talk"}) as begun:
            assert begun.status == 201, await begun.text()
            return cast(str, (await begun.json())["id"])

    async def socket(self, session: str, **options: Any) -> ClientWebSocketResponse:
        """Open the events socket of a session."""
        options = {"origin": self.server.address, "max_msg_size": 0, **options}
        socket: ClientWebSocketResponse = await self.http.ws_connect(f"/ws/sessions/{session}/", **options)
        return socket


@pytest.fixture(scope="session", params=SERVERS)
def running(
    request: pytest.FixtureRequest, prepared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    data = copy(prepared, tmp_path_factory.mktemp(request.param) / "data")
    server = Running(data, ("-m", "tests.support.strict_server"), WEB_SERVER=request.param, **LIMITS)
    server.cookies = {}
    server.start()
    yield server
    server.stop()


@pytest_asyncio.fixture
async def person(running: Running) -> AsyncIterator[Person]:
    async with ClientSession(running.address, cookie_jar=CookieJar(unsafe=True), cookies=running.cookies) as http:
        if not running.cookies:
            await enter(http, running.link)
            running.cookies = {cookie.key: cookie.value for cookie in http.cookie_jar}
        http.headers["X-CSRFToken"] = running.cookies["parley_csrf"]
        yield Person(running, http)
