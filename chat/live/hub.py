"""The hub of a web process: one subscription for all its sockets, one feed per watched session, and the beacon."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet, WeakValueDictionary

from django.conf import settings
from django.db.models import Model
from django.db.models.signals import ModelSignal, post_delete, post_save

from chat import access, ids
from chat.bus.events import AccessChanged, decode
from chat.commands import CancelRun, Fork, SendMessage, SessionCommand
from chat.db import Threads
from chat.live import credentials
from chat.live.credentials import Login
from chat.live.feed import Feed
from chat.live.layer_connection import LayerConnection, Message
from chat.live.notifier import SessionListNotifier
from chat.live.read_marks import ReadMarks
from chat.live.role_changes import RoleChanges
from chat.live.sign_ins import SignIns
from chat.live.socket_queue import SocketQueue
from chat.live.subscriber import AWAY, SIGN_IN_AGAIN, Subscriber
from chat.models import Membership, Share, User
from chat.queries import messages
from chat.services.transaction import notify_access_changed

logger = logging.getLogger(__name__)

BEACON_INTERVAL = 3.0
# Seconds. An event that is this much later than its rows counts as lost. Pages reload if it changed hundreds of rows.
EVENT_IS_LOST = 0.5
# After an outage of the channel layer, processes refresh their session lists within this many seconds, not together.
LISTS_JITTER = 2.0
# Seconds for which a feed is kept after its last viewer, so that a reloaded page finds the streaming text in memory.
LINGER = 10.0
# Quick commands have separate threads, because Stop must not wait until viewers have caught up. Forks also have
# separate threads, because copying the files of a workspace takes seconds.
THREADS = 4
FORK_THREADS = 2
QUICK_THREADS = 4
QUICK_COMMANDS = (CancelRun, SendMessage)
READERS = 3
# The most sockets of one user that catch up at the same time. Their frames are in memory until they are sent.
SYNCS_PER_USER = 4


class Hub:
    """Receives all published events of the sessions that are watched here, and passes them to the feeds."""

    def __init__(self) -> None:
        self.threads = Threads(THREADS, "parley-hub")
        self._quick_threads = Threads(QUICK_THREADS, "parley-quick")
        self._fork_threads = Threads(FORK_THREADS, "parley-fork")
        self.sign_ins = SignIns()
        self._feeds: dict[str, Feed] = {}
        self._without_session: set[SocketQueue] = set()
        self._readers = Threads(READERS, "parley-reader")
        self._list_notifier = SessionListNotifier(self.threads, self._pages)
        self.read_marks = ReadMarks(self.threads)
        self._role_changes = RoleChanges(self.threads, self._feeds, self._check_access)
        self._ending = False
        self._id = ids.worker_id()
        self._connection = LayerConnection(self._feeds, self._handle_message)
        self._tasks: set[asyncio.Task[None]] = set()
        self._sockets: dict[int, WeakSet[SocketQueue]] = {}
        self._connecting: Counter[int] = Counter()
        self._streams: Counter[int] = Counter()
        self._syncs: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()

    async def start(self) -> None:
        """Start the hub, even if the channel layer is down. Until it is back, the beacon updates the viewers."""
        await self._connection.start()
        self._spawn(self._beacon_forever())
        for signal, kind in ACCESS_MAY_CHANGE:
            signal.connect(_access_may_change, sender=kind, dispatch_uid=(id(self), kind))

    async def stop(self) -> None:
        for signal, kind in ACCESS_MAY_CHANGE:
            signal.disconnect(sender=kind, dispatch_uid=(id(self), kind))
        await self._connection.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.read_marks.close()
        self._list_notifier.close()
        self._role_changes.close()
        for feed in self._feeds.values():
            feed.close()
        self._close_where(lambda each: True, AWAY)
        self._feeds.clear()
        for threads in (self._readers, self._quick_threads, self._fork_threads, self.threads, self.sign_ins):
            await threads.close()

    def threads_for(self, command: SessionCommand) -> Threads:
        """Return the threads that execute a command."""
        if isinstance(command, Fork):
            return self._fork_threads
        return self._quick_threads if isinstance(command, QUICK_COMMANDS) else self.threads

    def watch(self, session_id: str, subscriber: Subscriber) -> Feed:
        """Subscribe a socket. Hold its events back until its first sync."""
        subscriber.session_id = session_id
        subscriber.pause()
        self._note_socket(subscriber)
        feed = self._feeds.get(session_id)
        if feed is None:
            feed = self._feeds[session_id] = Feed(session_id, self._readers, self._id)
            self._connection.update(session_id)
        feed.join(subscriber)
        if self._ending and subscriber.over_http:
            subscriber.close(AWAY)
        return feed

    def unwatch(self, feed: Feed, subscriber: Subscriber) -> None:
        feed.leave(subscriber)
        if not feed.subscribers:
            asyncio.get_running_loop().call_later(LINGER, self._drop_if_unwatched, feed)

    def enter(self, socket_queue: SocketQueue) -> None:
        """Add a page that shows no session, so that it gets notices."""
        self._note_socket(socket_queue)
        self._without_session.add(socket_queue)

    def exit(self, socket_queue: SocketQueue) -> None:
        self._without_session.discard(socket_queue)

    # -- limits on a user's sockets and streams ---------------------------------------------------------------------

    @contextmanager
    def connecting(self, user_id: int) -> Iterator[bool]:
        """Reserve a place for a socket until it is added; yield False if the user has too many."""
        is_open = sum(not each.closed for each in self._sockets.get(user_id, ()))
        if 0 < settings.SOCKETS_PER_USER <= is_open + self._connecting[user_id]:
            yield False
            return
        self._connecting[user_id] += 1
        try:
            yield True
        finally:
            _decrement(self._connecting, user_id)

    def may_stream(self, user_id: int) -> bool:
        """Return whether a user may open one more stream or waiting request. Can be called from any thread."""
        limit: int = settings.STREAMS_PER_USER
        return not limit or self._streams[user_id] < limit

    @contextmanager
    def streaming(self, user_id: int) -> Iterator[bool]:
        """Count a stream or a waiting request while it is open; yield False if the user has too many."""
        if not self.may_stream(user_id):
            yield False
            return
        self._streams[user_id] += 1
        try:
            yield True
        finally:
            _decrement(self._streams, user_id)

    def catching_up(self, user_id: int) -> asyncio.Semaphore:
        """Return the semaphore that limits how many of a user's sockets catch up at the same time."""
        return self._syncs.setdefault(user_id, asyncio.Semaphore(SYNCS_PER_USER))

    def _note_socket(self, subscriber: Subscriber) -> None:
        if isinstance(subscriber, SocketQueue) and not subscriber.over_http:
            self._sockets.setdefault(subscriber.user_id, WeakSet()).add(subscriber)

    # -- subscribers -----------------------------------------------------------------------------------------------

    def _subscribers(self) -> Iterator[Subscriber]:
        yield from list(self._without_session)
        for feed in list(self._feeds.values()):
            yield from feed.subscribers

    def counts(self) -> Counter[str]:
        """Count the open sockets and event streams, by kind, for the metrics."""
        return Counter("stream" if each.over_http else each.protocol for each in self._subscribers() if not each.closed)

    @property
    def watched(self) -> int:
        """The number of sessions that have viewers in this process."""
        return len(self._feeds)

    def _pages(self) -> Iterator[SocketQueue]:
        for each in self._subscribers():
            if isinstance(each, SocketQueue) and each.protocol == "page" and not each.closed:
                yield each

    def _drop_if_unwatched(self, feed: Feed) -> None:
        if feed.subscribers or self._feeds.get(feed.session_id) is not feed:
            return
        del self._feeds[feed.session_id]
        feed.close()
        self._connection.update(feed.session_id)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- incoming messages ------------------------------------------------------------------------------------------

    def _handle_message(self, message: Message) -> None:
        feed = self._feeds.get(message.get("session", ""))
        match message["type"]:
            case "signed.out":
                key = message["key"]
                self._close_where(lambda each: isinstance(each.credential, Login) and each.credential.key_hash == key)
            case "person.changed":
                self._check_user_soon(message["user"])
                if workspace_id := message.get("workspace"):  # other releases send none
                    theirs = list(self._sockets.get(message["user"], ()))
                    self._role_changes.add(workspace_id, message["user"], theirs)
            case "news":
                readers = ((user_id, session_id) for user_id, session_id in message.get("readers", ()))
                self._list_notifier.notify(message["sessions"], message["people"], readers)
            case "lists.stale":
                delay = random.uniform(0, LISTS_JITTER)  # noqa: S311  # no secret
                asyncio.get_running_loop().call_later(delay, self._list_notifier.notify_everyone)
            case "session.people" if feed is not None:
                editing = message.get("editing", ())  # other releases may send none
                feed.presence.receive(message["hub"], dict(message["people"]), asks=message["asks"], editing=editing)
            case "session.typing" if feed is not None:
                feed.presence.start_typing(message["user"])
            case "session.events" if feed is not None:  # other releases may send other types
                events = [decode(event) for event in message["events"]]
                feed.receive(events, message.get("head"))
                if any(isinstance(event, AccessChanged) for event in events):
                    self._check_access_soon(feed)

    # -- the beacon -------------------------------------------------------------------------------------------------

    async def _beacon_forever(self) -> None:
        """Recover what was lost: events, subscriptions, and notices that a user lost access."""
        while True:
            await asyncio.sleep(BEACON_INTERVAL)
            self._without_session = {socket_queue for socket_queue in self._without_session if not socket_queue.closed}
            self._sockets = {user_id: sockets for user_id, sockets in self._sockets.items() if len(sockets)}
            try:
                await self._beacon([feed for feed in self._feeds.values() if feed.subscribers])
                await self._check_credentials(list(self._subscribers()))
            except Exception as error:  # usually the database is unavailable; the next round tries again
                logger.warning("A periodic check of live updates failed: %r", error)

    async def _beacon(self, feeds: list[Feed]) -> None:
        if not feeds:
            return
        for feed in feeds:
            feed.presence.beat()
            self._connection.repair(feed.session_id)
            for each in feed.subscribers:
                if each.closed:  # the server has not reported its end yet
                    self.unwatch(feed, each)
        known = {feed.session_id: feed.revision for feed in feeds}
        heads = await self.threads.run(messages.revisions, list(known))
        for feed in feeds:
            if 0 < heads.get(feed.session_id, 0) < known[feed.session_id]:
                feed.start_again(heads.pop(feed.session_id))
        if any(heads.get(feed.session_id, 0) > feed.revision for feed in feeds):
            await asyncio.sleep(EVENT_IS_LOST)
        for feed in feeds:
            feed.beat(heads.get(feed.session_id, 0))
        await self._check_access(feeds)

    # -- access and credentials of subscribers (LIVE-06) ------------------------------------------------------------

    def _check_user_soon(self, user_id: int) -> None:
        """Check the access, role and credentials of a user's subscribers, and notify their session lists."""
        theirs = [each for each in self._subscribers() if each.user_id == user_id]
        if not theirs:
            return
        watched = [feed for feed in self._feeds.values() if any(each in theirs for each in feed.subscribers)]

        async def check() -> None:
            await self._check_access(watched)
            await self._check_credentials(theirs)

        self._spawn(self._or_log(check()))
        self._list_notifier.notify(people=[user_id])

    def _check_access_soon(self, feed: Feed) -> None:
        """Check the access to a session in a task, without delaying the stream, then notify the remaining pages."""

        async def check() -> None:
            await self._check_access([feed])
            feed.send_access_changed()

        self._spawn(self._or_log(check()))

    async def _or_log(self, check: Coroutine[Any, Any, None]) -> None:
        try:
            await check
        except Exception as error:  # the beacon checks again
            logger.warning("Could not check access: %r", error)

    async def _check_access(self, feeds: Iterable[Feed]) -> None:
        pairs = {(each.user_id, feed.session_id) for feed in feeds for each in feed.subscribers}
        roles = await self.threads.run(access.roles, pairs) if pairs else {}
        for feed in feeds:
            for each in feed.subscribers:
                if (each.user_id, feed.session_id) in pairs:
                    each.set_role(roles.get((each.user_id, feed.session_id)))

    async def _check_credentials(self, subscribers: list[Subscriber]) -> None:
        known = {each.credential for each in subscribers if each.credential}
        over = await self.threads.run(credentials.ended, known) if known else set()
        self._close_where(lambda each: each.credential in over)

    def end_streams(self) -> None:
        """End HTTP responses that stream or wait, and those that start later. The server itself ends sockets."""
        self._ending = True
        self._close_where(lambda each: each.over_http, AWAY)

    def _close_where(self, condition: Callable[[Subscriber], object], code: int = SIGN_IN_AGAIN) -> None:
        for each in self._subscribers():
            if condition(each):
                each.close(code)


def _decrement(counter: Counter[int], key: int) -> None:
    counter[key] -= 1
    if counter[key] <= 0:
        del counter[key]


# Changes by any code, including the admin. The beacon finds changes without a signal, such as an update of many rows.
# Code that adds a membership or changes its role notifies by itself.
ACCESS_MAY_CHANGE: tuple[tuple[ModelSignal, type[Model]], ...] = (
    (post_save, User),
    (post_save, Share),
    (post_delete, Share),
    (post_delete, Membership),
)


def _access_may_change(instance: User | Share | Membership, **details: Any) -> None:
    if details.get("created") or set(details.get("update_fields") or ()) == {"last_login"}:
        return
    user_id = instance.pk if isinstance(instance, User) else instance.user_id
    notify_access_changed(user_id, instance.workspace_id if isinstance(instance, Membership) else None)
