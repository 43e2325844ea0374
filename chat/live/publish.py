"""The only module that sends to the channel layer. What it carries is a hint: the rows are the truth."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings

from chat.events import ChatEvent, encode

logger = logging.getLogger(__name__)
Message = dict[str, Any]

# The group that every hub is in, for what concerns people and not one session.
HUBS = "hubs"


def group_of(session_id: str) -> str:
    return f"session.{session_id}"


class Publisher:
    """Sends, in order and from one task, what this process publishes; callers never wait for the layer."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._queue: deque[tuple[str, Message]] = deque()
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Send from the running loop from now on."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    async def close(self) -> None:
        """Send what is queued, then stop."""
        if self._task is not None:
            await self._task
        self._loop = None

    def put(self, group: str, message: Message) -> None:
        """Queue a message; from any thread."""
        if self._loop is None:
            _send_without_loop(group, message)
        elif threading.get_ident() == self._thread:
            self._enqueue(group, message)
        else:
            self._loop.call_soon_threadsafe(self._enqueue, group, message)

    def _enqueue(self, group: str, message: Message) -> None:
        self._queue.append((group, message))
        if self._task is None and self._loop is not None:
            self._task = self._loop.create_task(self._drain())

    async def _drain(self) -> None:
        layer = get_channel_layer()
        assert layer is not None
        while self._queue:
            group, message = self._queue.popleft()
            try:
                await layer.group_send(group, message)
            except Exception as error:  # the layer is down: viewers catch up from the rows (LIVE-02)
                logger.warning("The channel layer refused a message: %s", error)
        self._task = None


def _send_without_loop(group: str, message: Message) -> None:
    """Send from a process without a live loop (a command, a WSGI admin). In memory nobody could hear it."""
    if not settings.REDIS_URL:
        return
    layer = get_channel_layer()
    assert layer is not None
    try:
        async_to_sync(layer.group_send)(group, message)
    except Exception as error:
        logger.warning("The channel layer refused a message: %s", error)


publisher = Publisher()


def publish(session_id: str, events: Sequence[ChatEvent]) -> None:
    """Tell the viewers of a session. Call after the commit that the events speak of."""
    if events:
        message = {"type": "session.events", "session": session_id, "events": [encode(event) for event in events]}
        publisher.put(group_of(session_id), message)


def sign_out(session_key: str) -> None:
    """Tell every hub that a browser's login has ended (LIVE-06)."""
    publisher.put(HUBS, {"type": "signed.out", "key": session_key})
