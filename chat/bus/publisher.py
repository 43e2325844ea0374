"""The only module that sends to the channel layer. What it carries is a hint: the rows are the truth."""

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

logger = logging.getLogger(__name__)
Message = dict[str, Any]

# The group that every hub is in, for what concerns people and not one session.
HUBS = "hubs"
# Characters in one message of the layer: at most four bytes each, and room for the rest, below 64 KB.
LARGEST_MESSAGE = 14_000
# The most people of whom one hub reports.
MOST_PEOPLE = 100
LONGEST_NAME = 80
# Many changes are sent together, so many ids in one message.
NEWS_INTERVAL = 0.1
MOST_NEWS = 400
NEWS = ("turn_start", "turn_done", "user_message")
WAITING = StatusChanged("waiting")
# A layer that takes nothing for so long is as good as down.
SEND_TIMEOUT = 5.0
# What waits for a layer that is down or slow; beyond it the oldest go, and viewers catch up from the rows.
MOST_WAITING = 20_000


def layer() -> Any:
    """The channel layer; Channels leaves it without a type."""
    found = get_channel_layer()
    if found is None:
        raise RuntimeError("CHANNEL_LAYERS has no default")
    return found


def group_of(session_id: str) -> str:
    return f"session.{session_id}"


class Publisher:
    """Sends, in order and from one task, what this process publishes; callers never wait for the layer."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._queue: deque[tuple[str, Message]] = deque(maxlen=MOST_WAITING)
        self._stirred: set[str] = set()
        self._concerned: set[int] = set()
        self._task: asyncio.Task[None] | None = None
        self._down = False

    def open(self) -> None:
        """Send from the running loop from now on."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._stirred.clear()
        self._concerned.clear()

    async def close(self) -> None:
        """Send what is queued, as far as the layer takes it soon, then stop."""
        self._loop = None
        if (task := self._task) is not None:
            await asyncio.wait([task], timeout=SEND_TIMEOUT)
            task.cancel()

    def stir(self, sessions: Iterable[str], people: Iterable[int]) -> None:
        """Tell all hubs of news, together with what else there is within a moment; from any thread."""
        if self._loop is None:
            for message in _news(sessions, people):
                _send_without_loop(HUBS, message)
        elif threading.get_ident() == self._thread:
            self._stir(sessions, people)
        else:
            self._soon(self._stir, sessions, people)

    def _stir(self, sessions: Iterable[str], people: Iterable[int]) -> None:
        if self._loop is not None and not (self._stirred or self._concerned):
            self._loop.call_later(NEWS_INTERVAL, self._tell_news)
        self._stirred.update(sessions)
        self._concerned.update(people)

    def _tell_news(self) -> None:
        for message in _news(self._stirred, self._concerned):
            self._enqueue(HUBS, message)
        self._stirred.clear()
        self._concerned.clear()

    def put(self, group: str, message: Message) -> None:
        """Queue a message; from any thread."""
        if self._loop is None:
            _send_without_loop(group, message)
        elif threading.get_ident() == self._thread:
            self._enqueue(group, message)
        else:
            self._soon(self._enqueue, group, message)

    def _soon(self, function: Callable[..., None], *args: object) -> None:
        """Call on the loop. One that has just ended publishes nothing, but the commit that is made stays good."""
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
                await self._send(*self._queue.popleft())
        finally:
            self._task = None

    async def _send(self, group: str, message: Message) -> None:
        try:
            await _send(group, message)
            self._down = False
        except Exception as error:  # viewers catch up from the rows (LIVE-02)
            if not self._down:  # an outage is logged once, not twenty times a second
                logger.warning("The channel layer is not there, what is live waits for it: %r", error)
            self._down = True


async def _send(group: str, message: Message) -> None:
    async with asyncio.timeout(SEND_TIMEOUT):
        await layer().group_send(group, message)


def _send_without_loop(group: str, message: Message) -> None:
    """Send from a process without a running loop (a command, a WSGI admin). In memory there are no receivers."""
    if not settings.REDIS_URL:
        return
    try:
        async_to_sync(_send)(group, message)
    except Exception as error:
        logger.warning("The channel layer refused a message: %r", error)


publisher = Publisher()


def publish(session_id: str, events: Sequence[ChatEvent]) -> None:
    """Tell the viewers of a session. Call after the commit that the events speak of, once, with all of them."""
    for message in messages(session_id, events):
        publisher.put(group_of(session_id), message)
    if any(map(_is_news, events)):
        stirred(sessions=[session_id])


def stirred(*, sessions: Iterable[str] = (), people: Iterable[int] = ()) -> None:
    """Let the lists of sessions be looked at again: of all who may see these sessions, and of these people."""
    publisher.stir(sessions, people)


def _is_news(event: ChatEvent) -> bool:
    """Whether it shows in a list of sessions: a turn's beginning or end, a person's message, a title, access."""
    if isinstance(event, MessageChanged):
        return event.name in NEWS
    return isinstance(event, SessionChanged | AccessChanged) or event == WAITING


def _news(sessions: Iterable[str], people: Iterable[int]) -> Iterator[Message]:
    sessions, people = list(sessions), list(people)
    for start in range(0, max(len(sessions), len(people)), MOST_NEWS):
        part = slice(start, start + MOST_NEWS)
        yield {"type": "news", "sessions": sessions[part], "people": people[part]}


def messages(session_id: str, events: Sequence[ChatEvent]) -> Iterator[Message]:
    """Make what a commit's events are on the layer: below 64 KB each.

    `head` is the last revision of the whole commit: who has heard of a later one knows that its hints are stale.
    """
    head = max((event.revision for event in events if isinstance(event, Durable)), default=None)
    for portion in _portions(events):
        told = [encode(event) for event in portion]
        yield {"type": "session.events", "session": session_id, "head": head, "events": told}


def people(session_id: str, hub: str, here: dict[int, str], *, asks: bool) -> None:
    """Tell the other hubs who watches a session in this process: user ids with names (LIVE-05)."""
    told = [[user_id, name[:LONGEST_NAME]] for user_id, name in list(here.items())[:MOST_PEOPLE]]
    message = {"type": "session.people", "session": session_id, "hub": hub, "people": told, "asks": asks}
    publisher.put(group_of(session_id), message)


def typing(session_id: str, user_id: int) -> None:
    """Notify the viewers of a session that a user is typing (LIVE-05)."""
    publisher.put(group_of(session_id), {"type": "session.typing", "session": session_id, "user": user_id})


def sign_out(key_hash: str) -> None:
    """Tell every hub that a browser's login has ended (LIVE-06); it is named by the hash of its key."""
    publisher.put(HUBS, {"type": "signed.out", "key": key_hash})


def person_changed(user_id: int) -> None:
    """Make every hub check again which sessions a user may listen to (LIVE-06)."""
    publisher.put(HUBS, {"type": "person.changed", "user": user_id})


def _portions(events: Sequence[ChatEvent]) -> Iterator[list[ChatEvent]]:
    """Cut events into messages that the layer takes, in order."""
    portion: list[ChatEvent] = []
    room = LARGEST_MESSAGE
    for event in _pieces(events):
        size = weight(event)
        if portion and size > room:
            yield portion
            portion, room = [], LARGEST_MESSAGE
        portion.append(event)
        room -= size
    if portion:
        yield portion


def _pieces(events: Sequence[ChatEvent]) -> Iterator[ChatEvent]:
    """Cut text that has waited long, while its message was being written, into pieces."""
    for event in events:
        if not isinstance(event, TextAppended) or len(event.text) <= LARGEST_MESSAGE:
            yield event
            continue
        for start in range(0, len(event.text), LARGEST_MESSAGE):
            text = event.text[start : start + LARGEST_MESSAGE]
            yield replace(event, offset=event.offset + start, text=text)
