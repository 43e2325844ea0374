"""Several people at several pages of one session, and what the rows say of it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass, field
from random import Random
from urllib.parse import urljoin

from aiohttp import ClientError, ClientSession, WSMsgType
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page, WebSocketRoute

from agents.messages import Json
from tests.browser.console import heed
from tests.browser.person import REFUSED
from tests.support.server import Server

# How long an action of a page waits for what it needs: often it is not there.
SOON = 900
PATIENCE = 30
CALM = 3
THERE = "removed_at is null"
PLACED = f"{THERE} and sequence is not null and type not in ('turn_start', 'turn_done')"
CONNECTED = "() => document.getElementById('connection')?.dataset.state === 'connected'"


class Line:
    """The connections of one page, which can be cut and delayed."""

    def __init__(self) -> None:
        self.is_up = True
        self._routes: list[WebSocketRoute] = []
        self._held: list[tuple[WebSocketRoute, str | bytes]] | None = None

    async def lead(self, route: WebSocketRoute) -> None:
        if not self.is_up:
            await route.close()
            return
        self._routes.append(route)
        server = route.connect_to_server()

        def heard(frame: str | bytes) -> None:
            if self._held is None:
                route.send(frame)
            else:
                self._held.append((route, frame))

        server.on_message(heard)

    async def cut(self) -> None:
        self.is_up = False
        self._held = None
        while self._routes:
            with suppress(PlaywrightError):
                await self._routes.pop().close()

    def restore(self) -> None:
        self.is_up = True

    def hold(self) -> None:
        if self._held is None:
            self._held = []

    def release(self) -> None:
        held, self._held = self._held or [], None
        for route, frame in held:
            with suppress(PlaywrightError):
                route.send(frame)


@dataclass
class Viewer:
    """One page of one user."""

    name: str
    page: Page
    line: Line = field(default_factory=Line)
    complaints: list[str] = field(default_factory=list)

    async def begin(self, address: str) -> None:
        self.complaints = heed(self.page, REFUSED)
        self.page.set_default_timeout(SOON)
        await self.page.route_web_socket("**/ws/**", self.line.lead)
        await self.page.goto(address, timeout=PATIENCE * 1000)
        await self.connected()

    async def connected(self) -> None:
        await self.page.wait_for_function(CONNECTED, timeout=PATIENCE * 1000)


class Crowd:
    """The people of one session, the owner first. `log` has what they did."""

    def __init__(self, server: Server, viewers: list[Viewer], chance: Random, session: str) -> None:
        self.server = server
        self.viewers = viewers
        self.chance = chance
        self.session = session
        self.log: list[str] = []
        self.count = 0

    def note(self, said: str) -> None:
        self.log.append(said)

    # -- what is in the rows

    def rows(self, query: str, *values: object) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.server.data / "parley.sqlite3", timeout=10)) as database:
            return database.execute(query, values).fetchall()

    def any_message(self, where: str = PLACED) -> str:
        """Return the id of one of the last messages that are like this; an unknown one if there is none."""
        query = f"select id from chat_chatmessage where session_id = ? and {where} order by revision desc limit 12"  # noqa: S608  # our own
        found = self.rows(query, self.session)
        return str(self.chance.choice(found)[0]) if found else "m_none"

    def states(self) -> set[str]:
        """Return the states of the agents that work or wait."""
        query = "select state from chat_sessionrun where wanted > done or state <> 'idle'"
        return {str(state) for (state,) in self.rows(query)}

    async def rest(self) -> None:
        """Wait until no agent works; one may wait for people. Raises TimeoutError."""
        calm = 0
        async with asyncio.timeout(PATIENCE):
            while calm < CALM:
                calm = 0 if self.states() - {"waiting"} else calm + 1
                await asyncio.sleep(0.15)

    # -- the API beside the pages

    async def command(self, viewer: Viewer, **values: object) -> None:
        """Give a command on a socket of its own, and wait for its answer. Refusals are a part of life."""
        cookies = await viewer.page.context.cookies()
        headers = {
            "Cookie": "; ".join(f"{each.get('name')}={each.get('value')}" for each in cookies),
            "Origin": self.server.address,
        }
        address = f"{self.server.address.replace('http', 'ws')}/ws/sessions/{self.session}/"
        self.note(f"  {values}")
        with suppress(OSError, ClientError, TimeoutError):
            async with (
                asyncio.timeout(8),
                ClientSession() as client,
                client.ws_connect(address, headers=headers) as line,
            ):
                await line.send_json({"ref": "crowd", **values})
                async for frame in line:
                    answer = json.loads(frame.data) if frame.type is WSMsgType.TEXT else {"ref": "crowd"}
                    if answer.get("ref") == "crowd":
                        self.note(f"  {answer.get('type')} {answer.get('code', '')}")
                        return

    async def request(self, method: str, path: str, data: Json) -> None:
        """Send a request of the session's owner to the REST API."""
        page = self.viewers[0].page
        headers = {"X-CSRFToken": await page.locator("[name=csrfmiddlewaretoken]").first.input_value()}
        address = urljoin(page.url, f"/api/sessions/{self.session}{path}")
        answer = await page.request.fetch(address, method=method, data=data, headers=headers)
        self.note(f"  {data} {answer.status}")
