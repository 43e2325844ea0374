"""Clients that follow a session over HTTP, with connections that a test can break."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Generic, Protocol, Self, TypeVar

from django.core.handlers.asgi import ASGIHandler

from agents.messages import Json
from chat.models import Session, User
from tests.api.asking import token_of
from tests.support.client import EventsClient
from tests.support.socket import PATIENCE
from tests.support.step_client import SseReader, StepClient
from tests.support.testing_node import TestNode


async def bearer(node: TestNode, user: User) -> dict[str, str]:
    """Return the Authorization header with a new read-only token."""
    return {"Authorization": f"Bearer {await node.do(token_of, user, 'read')}"}


class Connection:
    """One request to the application like that of a web server. `room` limits the unread messages (0: no limit)."""

    def __init__(self, scope: Json, room: int, body: bytes = b"") -> None:
        self.sent: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue(room)
        # Set once the server has had to wait for room.
        self.blocked = asyncio.Event()
        self._coming: asyncio.Queue[Json] = asyncio.Queue()
        self._coming.put_nowait({"type": "http.request", "body": body})
        self._work = asyncio.get_running_loop().create_task(ASGIHandler()(scope, self._coming.get, self._send))

    async def _send(self, message: Mapping[str, Any]) -> None:
        if self.sent.full():
            self.blocked.set()
        await self.sent.put(message)

    async def lose(self) -> None:
        self._coming.put_nowait({"type": "http.disconnect"})
        await self.done()

    async def done(self) -> None:
        await asyncio.wait_for(self._work, PATIENCE)


class Folding(Protocol):
    """A client that handles pieces of a stream, which may be cut anywhere."""

    last_event_id: str

    def connected(self) -> None: ...
    def read(self, piece: str) -> None: ...


Client = TypeVar("Client", bound=Folding)


class StreamViewer(Generic[Client]):
    """A client of the real application. `asked` has its token or cookie, and `text` all that it has received."""

    def __init__(self, client: Client, path: str, *, asked: dict[str, str], since: int | None = None) -> None:
        self.client = client
        self.text = ""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.over = False
        self._path = path
        self._query = "" if since is None else f"since={since}"
        self._asked = asked
        self._changed = asyncio.Event()

    async def open(self, room: int = 0) -> Self:
        """Connect. With a `room`, the client reads only after `go_on`, and the server blocks when the room is full."""
        resumes = {"Last-Event-ID": self.client.last_event_id} if self.client.last_event_id else {}
        headers = [(name.lower().encode(), value.encode()) for name, value in {**self._asked, **resumes}.items()]
        scope = {
            "type": "http",
            "method": "GET",
            "path": self._path,
            "query_string": self._query.encode(),
            "headers": [(b"host", b"testserver"), *headers],
        }
        self.client.connected()
        self.over = False
        self._connection = Connection(scope, room)
        start = await asyncio.wait_for(self._connection.sent.get(), PATIENCE)
        self.status = start["status"]
        self.headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        if not room:
            self.go_on()
        return self

    def go_on(self) -> None:
        self._reading = asyncio.get_running_loop().create_task(self._read(self._connection))

    async def blocks(self) -> None:
        """Wait until the server has a piece that does not fit into the `room`."""
        await asyncio.wait_for(self._connection.blocked.wait(), PATIENCE)

    async def pause(self) -> None:
        """Stop reading. The server blocks when the `room` is full."""
        self._reading.cancel()
        await asyncio.wait([self._reading])

    async def _read(self, connection: Connection) -> None:
        more = True
        while more:
            body = await connection.sent.get()
            more = body.get("more_body", False)
            self._take(body.get("body", b"").decode())
        await connection.done()
        self.over = True
        self._changed.set()

    def _take(self, piece: str) -> None:
        self.text += piece
        self.client.read(piece)
        self._changed.set()

    async def cut(self, chance: Random | None = None) -> None:
        """Break the connection at a random point, so that a part of the sent data is lost."""
        self._reading.cancel()
        await asyncio.wait([self._reading])
        if chance and not self._connection.sent.empty():
            piece = self._connection.sent.get_nowait().get("body", b"").decode()
            self._take(piece[: chance.randrange(len(piece) + 1)])
        await self._connection.lose()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until the received data satisfies a condition."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


class StepViewer(StreamViewer[StepClient]):
    """A client of the stream of steps."""

    def __init__(self, session: Session, *, asked: dict[str, str], since: int | None = None) -> None:
        super().__init__(StepClient(), f"/api/sessions/{session.pk}/steps/stream", asked=asked, since=since)


class EventReader(SseReader):
    """The reference client of the events, which never needs a sync on this stream."""

    def __init__(self) -> None:
        super().__init__()
        self.events = EventsClient()
        self.types: list[str] = []

    def connected(self) -> None:
        super().connected()
        self.events.wants_sync = self.events.asking = False

    def take(self, data: Json) -> None:
        self.types.append(data["type"])
        self.events.receive(data)
        assert not self.events.wants_sync, data


class EventViewer(StreamViewer[EventReader]):
    """A client of the stream of events."""

    def __init__(self, session: Session, *, asked: dict[str, str], since: int | None = None) -> None:
        super().__init__(EventReader(), f"/api/sessions/{session.pk}/events", asked=asked, since=since)
