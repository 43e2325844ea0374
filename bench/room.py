"""The cost of one turn in a room: a session that many users have open in their browsers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import aiohttp

from bench import rows
from bench.figures import print_table
from bench.stage import PATHS, Stage, Stream
from bench.viewer import Viewer

TOKENS = 100
OTHER_SESSIONS = 20
ROUNDS = 3
AT_ONCE = 50
# The delays of the scripts in static/js: after a notice about the session list, and after a new message is shown.
LIST_SECONDS, READ_SECONDS = 0.3, 1.5


class Page(Viewer):
    """A page on the session. `knows_own`: it updates its own session's row of the list without a request."""

    def __init__(self, session_id: str, cookie: str, host: str, client: aiohttp.ClientSession, *, knows_own: bool):
        super().__init__(PATHS["page"].format(session_id), cookie, host)
        self.lists = self.reads = 0
        self._address, self._cookie = f"/session-list?current={session_id}", cookie
        self._client, self._knows_own = client, knows_own
        self._status = "idle"
        self._waiting_to = set[str]()
        self.tasks = set[asyncio.Task[None]]()

    def _take(self, frame: bytes, now: float) -> None:
        super()._take(frame, now)
        values: dict[str, Any] = json.loads(frame)
        if "revision" in values:
            self._once("read", self._read())
        if values.get("op") == "rail" and not (self._knows_own and values.get("own")):
            self._once("list", self._list(LIST_SECONDS))
        if values.get("op") == "status":
            turned = (self._status == "idle") != (values["status"] == "idle")
            self._status = values["status"]
            if turned and not self._knows_own:
                self._once("now", self._list(0))

    def _once(self, what: str, work: Coroutine[Any, Any, None]) -> None:
        if what in self._waiting_to:
            work.close()
            return
        self._waiting_to.add(what)
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        task.add_done_callback(lambda task: self._waiting_to.discard(what))

    async def _list(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.lists += 1
        async with self._client.get(self._address, headers={"Cookie": self._cookie}) as response:
            await response.read()
        if response.status != 200:
            raise RuntimeError(f"the list answers {response.status}")

    async def _read(self) -> None:
        await asyncio.sleep(READ_SECONDS)
        self.reads += 1
        self.send(type="read", revision=10**9)


async def measure(stage: Stage, counts: list[int], *, knows_own: bool) -> None:
    """Print the CPU seconds of a turn of 100 tokens in rooms of `counts` users, and the requests of their pages."""
    head = ["people", "CPU s a turn", "lists a page", "read marks a page"]
    table = []
    host = f"127.0.0.1:{stage.server.port}"
    connector = aiohttp.TCPConnector(limit=AT_ONCE)
    async with aiohttp.ClientSession(f"http://{host}", connector=connector) as client:
        for count in counts:
            session_id, cookies = await asyncio.to_thread(rows.room, stage.owner, stage.provider, count, OTHER_SESSIONS)
            pages = [Page(session_id, cookie, host, client, knows_own=knows_own) for cookie in cookies]
            await _open(stage, pages)
            await stage.quiet()
            (asker,) = await stage.watch([session_id])
            table += [await _round(stage, asker, pages) for _ in range(ROUNDS)]
            for page in pages:
                page.close()
    print_table(f"A turn in a room, {stage.server.kind}", head, table)


async def _open(stage: Stage, pages: list[Page]) -> None:
    loop = asyncio.get_running_loop()
    for page in pages:
        await loop.create_connection(lambda page=page: page, "127.0.0.1", stage.server.port)  # type: ignore[misc]
        await page.connected()
        synced = page.wait_for(b'"synced"')
        page.send(type="sync", since=0, have={})
        await synced


async def _round(stage: Stage, asker: Stream, pages: list[Page]) -> list[str]:
    for page in pages:
        page.lists = page.reads = 0
    began = stage.server.cpu()
    stage.ask(asker, count=TOKENS)
    await stage.streaming([asker])
    await asyncio.sleep(TOKENS / 50 + 2 * READ_SECONDS)
    while any(page.tasks for page in pages):  # noqa: ASYNC110  # many tasks, which start others
        await asyncio.sleep(0.1)
    await stage.quiet()
    spent = stage.server.cpu() - began
    lists, reads = sum(page.lists for page in pages), sum(page.reads for page in pages)
    return [str(len(pages)), f"{spent:.2f}", f"{lists / len(pages):.2f}", f"{reads / len(pages):.2f}"]
