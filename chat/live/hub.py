"""The hub of a web process: one subscription for all its sockets, one feed per watched session, and the beacon."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from django.contrib.sessions.models import Session as Login
from django.db import transaction
from django.db.models import Model
from django.db.models.signals import ModelSignal, post_delete, post_save
from django.utils import timezone

from chat.db import Threads
from chat.events import AccessChanged, decode
from chat.live.feed import Feed
from chat.live.outbox import AWAY, NO_ACCESS, SIGN_IN_AGAIN, Outbox
from chat.live.publish import HUBS, layer, person_changed
from chat.live.subscriptions import Subscriptions
from chat.models import Membership, Share, User
from chat.services import access, reading

logger = logging.getLogger(__name__)
Message = dict[str, Any]

BEACON_INTERVAL = 3.0
# A feed outlives its last viewer by this: whoever reloads the page finds the growing text in memory.
LINGER = 10.0
# Commands and checks have threads of their own: Stop must not wait until a crowd of viewers has caught up.
THREADS = 4
READERS = 3
# So many live messages are handled before the sockets get their turn.
AT_ONCE = 20


class Hub:
    """Hears everything that is published about the sessions that are watched in this process."""

    def __init__(self) -> None:
        self.threads = Threads(THREADS, "parley-hub")
        self._readers = Threads(READERS, "parley-reader")
        self._feeds: dict[str, Feed] = {}
        self._channel = ""
        self._subscriptions = Subscriptions("", self._subscribed)
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._channel = await layer().new_channel("hub")
        await layer().group_add(HUBS, self._channel)
        self._subscriptions = Subscriptions(self._channel, self._subscribed)
        self._spawn(self._receive_forever())
        self._spawn(self._beacon_forever())
        for signal, kind in ACCESS_MAY_CHANGE:
            signal.connect(_access_may_change, sender=kind, dispatch_uid=(id(self), kind))

    async def stop(self) -> None:
        for signal, kind in ACCESS_MAY_CHANGE:
            signal.disconnect(sender=kind, dispatch_uid=(id(self), kind))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._subscriptions.close()
        for feed in self._feeds.values():
            feed.close()
        self._close_where(lambda outbox: True, AWAY)
        self._feeds.clear()
        await self._readers.close()
        await self.threads.close()

    def watch(self, session_id: str, outbox: Outbox) -> Feed:
        """Let a viewer listen. Its frames are held back until its first sync."""
        outbox.hold()
        feed = self._feeds.get(session_id)
        if feed is None:
            feed = self._feeds[session_id] = Feed(session_id, self._readers)
            self._subscriptions.look(session_id)
        feed.join(outbox)
        return feed

    def unwatch(self, feed: Feed, outbox: Outbox) -> None:
        feed.leave(outbox)
        if not feed.outboxes:
            asyncio.get_running_loop().call_later(LINGER, self._drop_if_unwatched, feed)

    def _drop_if_unwatched(self, feed: Feed) -> None:
        if feed.outboxes or self._feeds.get(feed.session_id) is not feed:
            return
        del self._feeds[feed.session_id]
        feed.close()
        self._subscriptions.look(feed.session_id)

    def _subscribed(self, session_id: str) -> asyncio.Event | None:
        feed = self._feeds.get(session_id)
        return feed.subscribed if feed else None

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- what comes in ----------------------------------------------------------------------------------------------

    async def _receive_forever(self) -> None:
        while True:
            try:
                for _ in range(AT_ONCE):
                    self._heard(await layer().receive(self._channel))
                await asyncio.sleep(0)
            except Exception:
                logger.exception("A live message could not be handled; its viewers catch up from the rows")
                await asyncio.sleep(0.05)

    def _heard(self, message: Message) -> None:
        match message["type"]:
            case "signed.out":
                self._close_where(lambda outbox: outbox.session_key == message["key"], SIGN_IN_AGAIN)
            case "person.changed":
                self._look_at_access(self._feeds_of(message["user"]))
            case _:
                self._told(message)

    def _told(self, message: Message) -> None:
        feed = self._feeds.get(message["session"])
        if feed is None:
            return
        events = [decode(event) for event in message["events"]]
        feed.receive(events, message.get("head"))
        if any(isinstance(event, AccessChanged) for event in events):
            self._look_at_access([feed])

    # -- the beacon -------------------------------------------------------------------------------------------------

    async def _beacon_forever(self) -> None:
        """Make good what was lost: events, subscriptions, and the news that somebody has lost access."""
        while True:
            await asyncio.sleep(BEACON_INTERVAL)
            try:
                await self._beacon([feed for feed in self._feeds.values() if feed.outboxes])
            except Exception as error:  # whatever it is, most likely the database: the next one may do better
                logger.warning("The beacon failed: %r", error)

    async def _beacon(self, feeds: list[Feed]) -> None:
        if not feeds:
            return
        for feed in feeds:
            if not self._subscriptions.has(feed.session_id):
                self._subscriptions.look(feed.session_id)
            for outbox in feed.outboxes:
                if outbox.closed:  # its end has not been told by the server, or not yet
                    self.unwatch(feed, outbox)
        heads = await self.threads.run(reading.revisions, [feed.session_id for feed in feeds])
        for feed in feeds:
            feed.beat(heads.get(feed.session_id, 0))
        await self._check_access(feeds)
        await self._check_logins(feeds)

    # -- who may listen (LIVE-06) -----------------------------------------------------------------------------------

    def _feeds_of(self, user_id: int) -> list[Feed]:
        return [feed for feed in self._feeds.values() if any(outbox.user_id == user_id for outbox in feed.outboxes)]

    def _look_at_access(self, feeds: list[Feed]) -> None:
        """Soon, and without holding up the stream."""
        if feeds:
            self._spawn(self._check_access_or_warn(feeds))

    async def _check_access_or_warn(self, feeds: list[Feed]) -> None:
        try:
            await self._check_access(feeds)
        except Exception as error:  # the beacon looks again
            logger.warning("Access could not be checked: %r", error)

    async def _check_access(self, feeds: Iterable[Feed]) -> None:
        pairs = {(outbox.user_id, feed.session_id) for feed in feeds for outbox in feed.outboxes}
        lost = pairs - (await self.threads.run(access.roles, pairs)).keys()
        for feed in feeds:
            for outbox in feed.outboxes:
                if (outbox.user_id, feed.session_id) in lost:
                    outbox.close(NO_ACCESS)

    async def _check_logins(self, feeds: list[Feed]) -> None:
        keys = {outbox.session_key for feed in feeds for outbox in feed.outboxes if outbox.session_key}
        over = keys - await self.threads.run(_alive, keys)
        self._close_where(lambda outbox: outbox.session_key in over, SIGN_IN_AGAIN)

    def _close_where(self, condition: Callable[[Outbox], bool], code: int) -> None:
        for feed in self._feeds.values():
            for outbox in feed.outboxes:
                if condition(outbox):
                    outbox.close(code)


def _alive(keys: set[str]) -> set[str]:
    logins = Login.objects.filter(session_key__in=keys, expire_date__gt=timezone.now())
    return set(logins.values_list("session_key", flat=True))


# However it is done, in the admin too. What needs no signal (an update of many rows) the beacon finds.
ACCESS_MAY_CHANGE: tuple[tuple[ModelSignal, type[Model]], ...] = (
    (post_save, User),
    (post_delete, Share),
    (post_delete, Membership),
)


def _access_may_change(instance: User | Share | Membership, **details: Any) -> None:
    if details.get("created") or set(details.get("update_fields") or ()) == {"last_login"}:
        return
    user_id = instance.pk if isinstance(instance, User) else instance.user_id
    transaction.on_commit(lambda: person_changed(user_id))
