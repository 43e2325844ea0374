"""The hub of a web process: one subscription for all its sockets, one feed per watched session, and the beacon."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from channels.layers import get_channel_layer
from django.contrib.sessions.models import Session as Login
from django.db import DatabaseError
from django.utils import timezone

from chat.db import Threads
from chat.events import AccessChanged, decode
from chat.live.feed import Feed
from chat.live.outbox import NO_ACCESS, SIGN_IN_AGAIN, Outbox
from chat.live.publish import HUBS, group_of
from chat.services import access, reading

logger = logging.getLogger(__name__)
Message = dict[str, Any]

BEACON_INTERVAL = 3.0
# A feed outlives its last viewer by this: whoever reloads the page finds the growing text in memory.
LINGER = 10.0
THREADS = 6


class Hub:
    """Hears everything that is published about the sessions that are watched in this process."""

    def __init__(self) -> None:
        self.threads = Threads(THREADS, "parley-hub")
        self._feeds: dict[str, Feed] = {}
        self._channel = ""
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        layer = _layer()
        self._channel = await layer.new_channel("hub")
        await layer.group_add(HUBS, self._channel)
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._receive_forever()), loop.create_task(self._beacon_forever())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for feed in self._feeds.values():
            feed.close()
            for outbox in tuple(feed.outboxes):
                outbox.close(1012)
        self._feeds.clear()
        await self.threads.close()

    async def watch(self, session_id: str, outbox: Outbox) -> Feed:
        """Let a viewer listen. Its frames are held back until its first sync."""
        outbox.hold()
        feed = self._feeds.get(session_id)
        if feed is None:
            feed = self._feeds[session_id] = Feed(session_id, self.threads)
            feed.outboxes.add(outbox)
            await _layer().group_add(group_of(session_id), self._channel)
            feed.subscribed.set()
        feed.outboxes.add(outbox)
        await feed.subscribed.wait()
        return feed

    def unwatch(self, feed: Feed, outbox: Outbox) -> None:
        feed.outboxes.discard(outbox)
        if not feed.outboxes:
            loop = asyncio.get_running_loop()
            loop.call_later(LINGER, lambda: self._drop_if_unwatched(feed))

    def _drop_if_unwatched(self, feed: Feed) -> None:
        if feed.outboxes or self._feeds.get(feed.session_id) is not feed:
            return
        del self._feeds[feed.session_id]
        feed.close()
        task = asyncio.get_running_loop().create_task(self._leave(feed.session_id))
        self._tasks.append(task)
        task.add_done_callback(self._tasks.remove)

    async def _leave(self, session_id: str) -> None:
        if session_id not in self._feeds:
            await _layer().group_discard(group_of(session_id), self._channel)
        if session_id in self._feeds:  # somebody came back in between
            await _layer().group_add(group_of(session_id), self._channel)

    async def _receive_forever(self) -> None:
        while True:
            try:
                message = await _layer().receive(self._channel)
                await self._heard(message)
            except asyncio.CancelledError:
                raise
            except Exception:
                logger.exception("A live message could not be handled; its viewers catch up from the rows")
                await asyncio.sleep(0.05)

    async def _heard(self, message: Message) -> None:
        if message["type"] == "signed.out":
            self._close_where(lambda outbox: outbox.session_key == message["key"], SIGN_IN_AGAIN)
            return
        feed = self._feeds.get(message["session"])
        if feed is None:
            return
        events = [decode(event) for event in message["events"]]
        feed.receive(events)
        if any(isinstance(event, AccessChanged) for event in events):
            await self._check_access([feed])

    async def _beacon_forever(self) -> None:
        """Tell the head revisions of all watched sessions, and who has lost access: both heal a lost message."""
        while True:
            await asyncio.sleep(BEACON_INTERVAL)
            feeds = [feed for feed in self._feeds.values() if feed.outboxes]
            if not feeds:
                continue
            try:
                heads = await self.threads.run(reading.revisions, [feed.session_id for feed in feeds])
                for feed in feeds:
                    feed.tell_head(heads.get(feed.session_id, 0))
                await self._check_access(feeds)
                await self._check_logins(feeds)
            except DatabaseError as error:
                logger.warning("The beacon cannot reach the database: %s", error)

    async def _check_access(self, feeds: list[Feed]) -> None:
        pairs = {(outbox.user_id, feed.session_id) for feed in feeds for outbox in feed.outboxes}
        roles = await self.threads.run(access.roles, pairs)
        for feed in feeds:
            for outbox in tuple(feed.outboxes):
                role = roles.get((outbox.user_id, feed.session_id))
                if role is None:
                    outbox.close(NO_ACCESS)
                else:
                    outbox.role = role

    async def _check_logins(self, feeds: list[Feed]) -> None:
        keys = {outbox.session_key for feed in feeds for outbox in feed.outboxes if outbox.session_key}
        alive = await self.threads.run(_alive, keys)
        self._close_where(lambda outbox: bool(outbox.session_key) and outbox.session_key in keys - alive, SIGN_IN_AGAIN)

    def _close_where(self, condition: Any, code: int) -> None:
        for feed in self._feeds.values():
            for outbox in tuple(feed.outboxes):
                if condition(outbox):
                    outbox.close(code)


def _alive(keys: set[str]) -> set[str]:
    logins = Login.objects.filter(session_key__in=keys, expire_date__gt=timezone.now())
    return set(logins.values_list("session_key", flat=True))


def _layer() -> Any:
    """The channel layer; Channels leaves it without a type."""
    layer = get_channel_layer()
    assert layer is not None
    return layer
