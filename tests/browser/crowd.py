"""Several users at several pages of one session, and queries of its rows."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Protocol
from urllib.parse import urljoin

from aiohttp import ClientError, ClientSession, WSMsgType
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page, WebSocketRoute

from agents.messages import Json
from tests.browser.console import collect_reports
from tests.browser.person import REFUSED
from tests.support.server import Server

# The time in ms that an action waits for an element. It is short, because the element often does not exist.
SOON = 900
PATIENCE = 30
CALM = 3
PASSWORD = "a long enough passphrase"  # of the invited users
THERE = "removed_at is null"
PLACED = f"{THERE} and sequence is not null and type not in ('turn_start', 'turn_done')"
CONNECTED = "() => document.getElementById('connection')?.dataset.state === 'connected'"


class Line:
    """The connections of one page, which can be cut and delayed."""

    def __init__(self) -> None:
        self.is_up = True
        self._routes: list[WebSocketRoute] = []
        self._held: list[Callable[[], None]] | None = None
        self._holds_commands = False

    async def lead(self, route: WebSocketRoute) -> None:
        if not self.is_up:
            await route.close()
            return
        self._routes.append(route)
        server = route.connect_to_server()
        server.on_message(lambda frame: self._pass(partial(route.send, frame), self._held is not None))
        route.on_message(lambda frame: self._pass(partial(server.send, frame), self._holds_commands))

    def _pass(self, send: Callable[[], None], is_held: bool) -> None:
        if is_held and self._held is not None:
            self._held.append(send)
        else:
            with suppress(PlaywrightError):
                send()

    async def cut(self) -> None:
        self.is_up = False
        self._held = None
        while self._routes:
            with suppress(PlaywrightError):
                await self._routes.pop().close()

    def restore(self) -> None:
        self.is_up = True

    def hold(self, *, commands: bool = False) -> None:
        """Hold back the frames to the page, and with `commands` also those to the server."""
        self._holds_commands = commands
        if self._held is None:
            self._held = []

    def trickle(self, count: int) -> None:
        """Deliver some of the frames that are held back."""
        for send in self._take(count):
            with suppress(PlaywrightError):
                send()

    def release(self) -> None:
        held, self._held, self._holds_commands = self._held or [], None, False
        for send in held:
            with suppress(PlaywrightError):
                send()

    def _take(self, count: int) -> list[Callable[[], None]]:
        held = self._held or []
        taken = held[:count]
        del held[:count]
        return taken


@dataclass
class Viewer:
    """One page of one user. `address` is that of the session, on the server that the page uses."""

    name: str
    page: Page
    address: str
    line: Line = field(default_factory=Line)
    reports: list[str] = field(default_factory=list)

    async def begin(self) -> None:
        self.reports = collect_reports(self.page, REFUSED)
        self.page.set_default_timeout(SOON)
        await self.page.route_web_socket("**/ws/**", self.line.lead)
        await self.open()
        await self.connected()

    async def open(self) -> None:
        """Open the session, and sign in before if the page asks for it."""
        await self.page.goto(self.address, timeout=PATIENCE * 1000)
        if await self.page.locator("[name=password]").count():
            await self.page.locator("[name=username]").fill(self.name.split(",")[0])
            await self.page.locator("[name=password]").fill(PASSWORD)
            await self.page.locator("form:has([name=password]) button").last.click()
            await self.page.wait_for_selector("#main.session", timeout=PATIENCE * 1000, state="attached")

    async def problem(self) -> str:
        """Wait until the page is connected. Return why it does not, or ""."""
        if not self.page.url.startswith(self.address) or await self.page.locator("main[data-closed]").count():
            await self.open()  # an action has ended elsewhere, or the session was deleted for a moment
        try:
            await self.connected()
        except PlaywrightError:
            state = await self.page.evaluate("() => document.getElementById('connection')?.outerHTML")
            return f"{self.page.url} is not connected: {state}"
        return ""

    async def connected(self) -> None:
        await self.page.wait_for_function(CONNECTED, timeout=PATIENCE * 1000)


class Servers(Protocol):
    """The processes behind the pages."""

    def rows(self, query: str, *values: object) -> list[tuple[object, ...]]:
        """Return the rows of a query whose placeholders are question marks."""

    async def fail(self, chance: Random) -> str:
        """Let one process end and start again. Return what happened."""


class OneServer:
    """A single server on SQLite."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def rows(self, query: str, *values: object) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self._server.data / "parley.sqlite3", timeout=10)) as database:
            return database.execute(query, values).fetchall()

    async def fail(self, chance: Random) -> str:
        end = chance.choice([self._server.kill, self._server.stop])
        await asyncio.to_thread(end)
        await asyncio.to_thread(self._server.start)
        return end.__name__


class Crowd:
    """The users of one session, the owner first. `log` lists their actions."""

    def __init__(self, servers: Servers, viewers: list[Viewer], chance: Random, session: str) -> None:
        self.servers = servers
        self.viewers = viewers
        self.chance = chance
        self.session = session
        self.log: list[str] = []
        self.count = 0

    def note(self, said: str) -> None:
        self.log.append(said)

    def mates(self, viewer: Viewer) -> list[Viewer]:
        """Return the pages of a user in one browser."""
        return [each for each in self.viewers if each.page.context is viewer.page.context]

    # -- what is in the rows

    def any_message(self, where: str = PLACED) -> str:
        """Return the id of one of the last messages that match `where`, or an unknown id if none does."""
        query = f"select id from chat_chatmessage where session_id = ? and {where} order by revision desc limit 12"  # noqa: S608  # our own
        found = self.servers.rows(query, self.session)
        return str(self.chance.choice(found)[0]) if found else "m_none"

    def states(self) -> set[str]:
        """Return the states of all runs that are not idle or are due."""
        query = "select state from chat_sessionrun where wanted > done or state <> 'idle'"
        return {str(state) for (state,) in self.servers.rows(query)}

    async def rest(self) -> None:
        """Wait until no agent works. Agents may wait for users. Raise TimeoutError."""
        calm = 0
        async with asyncio.timeout(PATIENCE):
            while calm < CALM:
                calm = 0 if self.states() - {"waiting"} else calm + 1
                await asyncio.sleep(0.15)

    # -- the API beside the pages

    async def command(self, viewer: Viewer, **values: object) -> None:
        """Send a command on a new socket and wait for the answer. A refusal is not an error."""
        cookies = await viewer.page.context.cookies()
        headers = {
            "Cookie": "; ".join(f"{each.get('name')}={each.get('value')}" for each in cookies),
            "Origin": urljoin(viewer.address, "/").rstrip("/"),
        }
        address = urljoin(viewer.address, f"/ws/sessions/{self.session}/").replace("http", "ws", 1)
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
        owner = self.viewers[0]
        headers = {"X-CSRFToken": await owner.page.locator("[name=csrfmiddlewaretoken]").first.input_value()}
        address = urljoin(owner.address, f"/api/sessions/{self.session}{path}")
        answer = await owner.page.request.fetch(address, method=method, data=data, headers=headers)
        self.note(f"  {data} {answer.status}")
