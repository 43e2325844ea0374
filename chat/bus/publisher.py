"""The only module that sends to the channel layer. Its messages are hints; the rows are the truth."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings

from chat.bus.events import (
    AccessChanged,
    ChatEvent,
    Durable,
    MessageChanged,
    SessionChanged,
    StatusChanged,
    TextAppended,
    encode,
    weight,
)
from chat.log_context import described

logger = logging.getLogger(__name__)
Message = dict[str, Any]

# The group of all hubs, for messages about users and session lists.
HUBS = "hubs"
# The most characters in one message of the layer. With at most four bytes each and the keys, it is below 64 KB.
MAX_MESSAGE_SIZE = 14_000
# The most viewers that one hub reports for a session.
MAX_VIEWERS = 100
MAX_NAME_LENGTH = 80
# The seconds for which changes of session lists are collected, and the most ids in one message.
LIST_CHANGES_INTERVAL = 0.1
MAX_LIST_CHANGES = 400
# The events that change session lists, besides SessionChanged and AccessChanged.
LISTED_EVENTS = ("turn_start", "turn_done", "user_message")
WAITING = StatusChanged("waiting")
# Seconds after which a send to the layer is abandoned.
SEND_TIMEOUT = 5.0
# The most messages that are sent to Redis in one round trip.
AT_ONCE = 200
# The seconds between two attempts while the layer is down. Messages that are published in the meantime wait.
FIRST_PAUSE, MAX_PAUSE = 0.1, 2.0
# The most messages that wait for a layer that is down or slow. If there are more, the oldest are dropped, because
# viewers can read the rows.
MAX_WAITING = 20_000


def layer() -> Any:
    """Return the channel layer, which has no type in Channels."""
    default = get_channel_layer()
    if default is None:
        raise RuntimeError("CHANNEL_LAYERS has no default")
    return default


def group_of(session_id: str) -> str:
    return f"session.{session_id}"


class Publisher:
    """The sender of this process's messages, in order and from one task. Callers never wait for the layer."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._queue: deque[tuple[str, Message]] = deque(maxlen=MAX_WAITING)
        self._listed_sessions: set[str] = set()
        # Pairs of a user and the session in which the user has read messages, or "" for other changes.
        self._listed_users: set[tuple[int, str]] = set()
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._pause = 0.0

    def open(self) -> None:
        """Send from the running loop from now on."""
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        self._thread = threading.get_ident()
        self._listed_sessions.clear()
        self._listed_users.clear()

    async def close(self) -> None:
        """Send the queued messages, for at most SEND_TIMEOUT seconds, and stop."""
        self._loop = None
        self._closing.set()
        if (task := self._task) is not None:
            await asyncio.wait([task], timeout=SEND_TIMEOUT)
            task.cancel()

    @property
    def waiting(self) -> int:
        """The number of messages that wait for the layer."""
        return len(self._queue)

    def list_changed(self, sessions: Iterable[str], users: Iterable[int], read_in: str = "") -> None:
        """Collect changes of session lists, and send them to all hubs soon. May be called from any thread."""
        sessions, users = list(sessions), list(users)
        if self._loop is not None and threading.get_ident() != self._thread:
            self._call_soon(self.list_changed, sessions, users, read_in)
            return
        pairs = [(user, read_in) for user in users]
        if self._loop is None:
            for message in _list_changes(sessions, pairs):
                _send_without_loop(HUBS, message)
            return
        if not (self._listed_sessions or self._listed_users):
            self._loop.call_later(LIST_CHANGES_INTERVAL, self._enqueue_list_changes)
        self._listed_sessions.update(sessions)
        self._listed_users.update(pairs)

    def _enqueue_list_changes(self) -> None:
        for message in _list_changes(self._listed_sessions, self._listed_users):
            self._enqueue(HUBS, message)
        self._listed_sessions.clear()
        self._listed_users.clear()

    def put(self, group: str, messages: Sequence[Message], listed: Sequence[str] = ()) -> None:
        """Queue messages, and changes of the `listed` sessions in session lists. May be called from any thread.

        The event loop is woken only once.
        """
        loop = self._loop
        if loop is not None and threading.get_ident() != self._thread:
            self._call_soon(self.put, group, messages, listed)
            return
        send = self._enqueue if loop is not None else _send_without_loop
        for message in messages:
            send(group, message)
        if listed:
            self.list_changed(listed, [])

    def _call_soon(self, function: Callable[..., None], *args: object) -> None:
        """Call a function on the loop. If the loop has just been closed, publish nothing: the commit is made anyway."""
        with suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(function, *args)

    def _enqueue(self, group: str, message: Message) -> None:
        self._queue.append((group, message))
        if self._task is None and self._loop is not None:
            self._task = self._loop.create_task(self._drain())

    async def _drain(self) -> None:
        try:
            while self._queue:
                await self._send([self._queue.popleft() for _ in range(min(AT_ONCE, len(self._queue)))])
        finally:
            self._task = None

    async def _send(self, sends: Sequence[tuple[str, Message]]) -> None:
        try:
            await _send_to_layer(sends)
        except Exception as error:  # viewers catch up from the rows (LIVE-02)
            if not self._pause:  # an outage is logged once, not twenty times a second
                logger.warning("The channel layer is not available, so live updates are delayed: %s", described(error))
            self._pause = min(MAX_PAUSE, self._pause * 2 or FIRST_PAUSE)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), self._pause)
            return
        if self._pause and self._loop is not None:
            # Viewers of sessions find missed changes by their revisions. Session lists have no revisions.
            self._enqueue(HUBS, {"type": "lists.stale"})
        self._pause = 0.0


async def _send_to_layer(sends: Sequence[tuple[str, Message]]) -> None:
    async with asyncio.timeout(SEND_TIMEOUT):
        if send_all := getattr(layer(), "group_send_all", None):
            await send_all(sends)
            return
        for group, message in sends:
            await layer().group_send(group, message)


def _send_without_loop(group: str, message: Message) -> None:
    """Send from a process without a running loop, such as a command. Without Redis, there are no receivers to reach."""
    if not settings.REDIS_URL:
        return
    try:
        async_to_sync(_send_to_layer)([(group, message)])
    except Exception as error:
        logger.warning("The channel layer refused a message: %s", described(error))


publisher = Publisher()


def publish(session_id: str, events: Sequence[ChatEvent]) -> None:
    """Send events to the viewers of a session. Call this once after a commit, with all of its events."""
    is_listed = any(
        isinstance(event, SessionChanged | AccessChanged)
        or event == WAITING
        or (isinstance(event, MessageChanged) and event.name in LISTED_EVENTS)
        for event in events
    )
    messages = list(layer_messages(session_id, events))
    publisher.put(group_of(session_id), messages, [session_id] if is_listed else [])


def notify_session_lists(*, sessions: Iterable[str] = (), users: Iterable[int] = (), read_in: str = "") -> None:
    """Make open pages update their session list: the pages of users who may see these sessions, and of these users.

    `read_in` is the session in which these users have read messages, if nothing else has changed for them.
    """
    publisher.list_changed(sessions, users, read_in)


def notify_login_ended(key_hash: str) -> None:
    """Make every hub close the connections of a login, given by the hash of its key (LIVE-06)."""
    publisher.put(HUBS, [{"type": "signed.out", "key": key_hash}])


def notify_access_changed(user_id: int, workspace_id: int | None = None) -> None:
    """Make every hub check again which sessions a user may watch (LIVE-06).

    `workspace_id` is the workspace in which the user's role has changed.
    """
    publisher.put(HUBS, [{"type": "person.changed", "user": user_id, "workspace": workspace_id}])


def notify_viewers(
    session_id: str, hub: str, viewers: dict[int, str], *, asks: bool, editing: Sequence[tuple[str, int]] = ()
) -> None:
    """Send the other hubs the viewers of a session in this process, as user ids with names (LIVE-05).

    With `asks`, the other hubs answer with their viewers. `editing` are open editors, as pairs of a message id or
    "system_prompt" and the user's id (LIVE-08).
    """
    listed = [[user_id, name[:MAX_NAME_LENGTH]] for user_id, name in list(viewers.items())[:MAX_VIEWERS]]
    message = {"type": "session.people", "session": session_id, "hub": hub, "people": listed, "asks": asks}
    if editing:
        message["editing"] = [list(each) for each in editing]
    publisher.put(group_of(session_id), [message])


def notify_typing(session_id: str, user_id: int) -> None:
    """Notify the viewers of a session that a user is typing (LIVE-05)."""
    publisher.put(group_of(session_id), [{"type": "session.typing", "session": session_id, "user": user_id}])


def layer_messages(session_id: str, events: Sequence[ChatEvent]) -> Iterator[Message]:
    """Yield the channel layer's messages for the events of one commit, each below 64 KB.

    Their `head` is the last revision of the whole commit. A receiver with a later revision drops the hints as outdated.
    """
    head = max((event.revision for event in events if isinstance(event, Durable)), default=None)
    for portion in _portions(events):
        encoded = [encode(event) for event in portion]
        yield {"type": "session.events", "session": session_id, "head": head, "events": encoded}


def _list_changes(sessions: Iterable[str], users: Iterable[tuple[int, str]]) -> Iterator[Message]:
    sessions, users = list(sessions), list(users)
    for start in range(0, max(len(sessions), len(users)), MAX_LIST_CHANGES):
        part = slice(start, start + MAX_LIST_CHANGES)
        people = [user for user, read_in in users[part] if not read_in]
        readers = [[user, read_in] for user, read_in in users[part] if read_in]
        # Hubs of earlier releases ignore "readers"; their lists are up to date when they are loaded the next time.
        yield {"type": "news", "sessions": sessions[part], "people": people, "readers": readers}


def _portions(events: Sequence[ChatEvent]) -> Iterator[list[ChatEvent]]:
    """Split events, in order, into messages that the layer accepts."""
    portion: list[ChatEvent] = []
    room = MAX_MESSAGE_SIZE
    for event in _pieces(events):
        size = weight(event)
        if portion and size > room:
            yield portion
            portion, room = [], MAX_MESSAGE_SIZE
        portion.append(event)
        room -= size
    if portion:
        yield portion


def _pieces(events: Sequence[ChatEvent]) -> Iterator[ChatEvent]:
    """Yield the events, with long texts split into pieces of at most MAX_MESSAGE_SIZE characters."""
    for event in events:
        if not isinstance(event, TextAppended) or len(event.text) <= MAX_MESSAGE_SIZE:
            yield event
            continue
        for start in range(0, len(event.text), MAX_MESSAGE_SIZE):
            text = event.text[start : start + MAX_MESSAGE_SIZE]
            yield replace(event, offset=event.offset + start, text=text)
