"""Viewers of a session: reference clients on a socket, or directly on a hub or feed, optionally over a bad link."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from random import Random
from typing import Generic, TypeVar

from agents.messages import Json
from chat.live.feed import Feed
from chat.live.hub import Hub
from chat.live.socket_queue import SocketQueue
from chat.live.subscriber import Protocol
from chat.models import Session, User
from tests.support.client import EventsClient
from tests.support.page_client import PageClient
from tests.support.socket import PATIENCE, Socket, is_presence, path_of

Client = TypeVar("Client", bound=EventsClient | PageClient)


class BadLink:
    """A link that drops, doubles and delays a share of the frames at random (seeded), so that they arrive out of order.

    The frames from `syncing` to `synced` are not numbered, so they arrive in order or are cut off, as on a socket.
    """

    def __init__(self, chance: Random, share: float = 0.3) -> None:
        self._chance = chance
        self._share = share
        self._delayed: list[Json] = []
        self._whole = False

    def carry(self, frame: Json) -> list[Json]:
        """Return the frames that arrive when this frame is sent."""
        op = frame.get("op") if isinstance(frame, dict) else "delta"
        if self._whole or op == "syncing":
            self._whole = op != "synced"
            return [frame]
        arrived = [frame]
        if self._chance.random() < self._share:
            fate = self._chance.choice(("drop", "double", "delay"))
            arrived = [] if fate == "drop" else [frame, json.loads(json.dumps(frame))]
            if fate == "delay":
                self._delayed.append(arrived.pop())
                arrived.clear()
        if self._delayed and self._chance.random() < 0.3:
            arrived.append(self._delayed.pop(self._chance.randrange(len(self._delayed))))
        return arrived

    def cut(self) -> None:
        self._delayed.clear()
        self._whole = False


class Viewer(Generic[Client]):
    """A viewer that applies frames and reacts as a client must: it syncs after a gap and reconnects after a cut."""

    def __init__(
        self, client: Client, session: Session, user: User, link: BadLink | None = None, language: str = "en"
    ) -> None:
        self.client = client
        self.session = session
        self.user = user
        self.link = link
        self.language = language
        self.frames: list[Json] = []
        self._changed = asyncio.Event()
        self._error: Exception | None = None

    @property
    def protocol(self) -> Protocol:
        return "events" if isinstance(self.client, EventsClient) else "page"

    @property
    def reads_short(self) -> bool:
        """Whether the viewer gets short frames: pages on a bad link do. Others get long frames, which tests check."""
        return self.protocol == "page" and self.link is not None

    def take(self, frame: Json) -> None:
        """Receive a frame that the server has sent, over the link if there is one.

        An error of the client is stored for `until`, because the server would treat it as a lost connection.
        """
        try:
            for arrived in self.link.carry(frame) if self.link else [frame]:
                if isinstance(arrived, dict) and not is_presence(arrived):
                    self.frames.append(arrived)
                self.client.receive(arrived)
            self.ask()
        except Exception as error:
            self._error = error
        self._changed.set()

    def ask(self) -> None:
        if self.client.wants_sync and not self.client.asking:
            self.send(self.client.sync())

    def send(self, command: Json) -> None:
        raise NotImplementedError

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition that frames change. After a timeout, fail with the viewer's state."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition():
                    if self._error is not None:
                        raise self._error
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError as error:
            raise AssertionError(f"{self._known()} waits in vain; the last frames: {self.frames[-3:]}") from error

    def _known(self) -> str:
        client = self.client
        asked = f"wants_sync={client.wants_sync} asking={client.asking} caught_up={client.caught_up}"
        return f"The {self.protocol} viewer at revision {client.revision} ({asked})"

    async def settle(self) -> None:
        """Remove the bad link, sync once more, and wait for the answer."""
        self.link = None
        self.client.reconnected()
        known = self.client.caught_up
        self.ask()
        await self.until(lambda: self.client.caught_up > known and not self.client.wants_sync)


class SocketViewer(Viewer[Client]):
    """A viewer on a real consumer."""

    socket: Socket

    async def open(self) -> SocketViewer[Client]:
        spoken = [(b"accept-language", self.language.encode())]
        path = path_of(self.session, self.protocol)
        query = f"lang={self.language}{'&frames=short' if self.reads_short else ''}"
        self.socket = Socket(path, self.user, query=query, headers=spoken)
        self.socket.on_frame = self.take
        await self.socket.open()
        self.client.reconnected()
        self.ask()
        return self

    async def cut(self) -> None:
        """Lose the connection and open a new one."""
        await self.leave()
        if self.link is not None:
            self.link.cut()
        await self.open()

    async def leave(self) -> None:
        self.socket.on_frame = lambda frame: None
        await self.socket.leave()

    def send(self, command: Json) -> None:
        self.socket.send(**command)

    def _known(self) -> str:
        return f"{super()._known()}, closed with {self.socket.close_code},"

    async def settle(self) -> None:
        self.link = None
        assert self.socket.close_code is None, self._known()
        # A client asks once at a time on a socket: the answer to an earlier sync would pass for that to the last one.
        if self.client.asking:
            await self.cut()
        await super().settle()


class FeedViewer(Viewer[Client]):
    """A viewer directly on a feed, for feeds that get only the events of a test."""

    closed_with: int | None = None
    socket_queue: SocketQueue
    feed: Feed
    _syncing: asyncio.Task[None] | None = None

    def join(self, feed: Feed) -> FeedViewer[Client]:
        self._connect()
        self.socket_queue.pause()
        feed.join(self.socket_queue)
        return self._begin(feed)

    def _connect(self) -> None:
        self.socket_queue = SocketQueue(
            self.protocol,
            self._frame,
            self._close,
            user_id=self.user.pk,
            name=self.user.sender,
            language=self.language,
        )
        self.socket_queue.short_frames = self.reads_short

    def _begin(self, feed: Feed) -> FeedViewer[Client]:
        self.feed = feed
        self.client.reconnected()
        self.ask()
        return self

    def send(self, command: Json) -> None:
        before = self._syncing

        async def sync() -> None:
            if before is not None:
                await before
            have = {
                id: known if isinstance(known, dict) else {"length": known} for id, known in command["have"].items()
            }
            await self.feed.sync(self.socket_queue, self.user, command["since"], have)

        self._syncing = asyncio.get_running_loop().create_task(sync())

    def leave(self) -> None:
        if self._syncing is not None:
            self._syncing.cancel()
        self.socket_queue.leave()
        self.feed.leave(self.socket_queue)

    async def _frame(self, text: str) -> None:
        self.take(json.loads(text))

    async def _close(self, code: int) -> None:
        self.closed_with = code
        self._changed.set()


class HubViewer(FeedViewer[Client]):
    """A viewer directly on a hub, for hubs other than that of this process's sockets."""

    def open(self, hub: Hub) -> HubViewer[Client]:
        self._hub = hub
        self._connect()
        self._begin(hub.watch(self.session.pk, self.socket_queue))
        return self

    def leave(self) -> None:
        super().leave()
        self._hub.unwatch(self.feed, self.socket_queue)
