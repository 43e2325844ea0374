"""The connection of a hub to the channel layer: its channel, the groups of the watched sessions, and its messages."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from chat.bus.publisher import HUBS, group_of, layer
from chat.live.feed import Feed
from chat.log_context import described

logger = logging.getLogger(__name__)
Message = dict[str, Any]

# Seconds after which a request to the layer is abandoned.
TIMEOUT = 5.0
RECONNECT_INTERVAL = 1.0
# Seconds between two messages of a process to itself, and the number of these that may be missing. Then it connects
# again.
ECHO_INTERVAL = 3.0
MAX_UNHEARD = 3
# The number of live messages that are handled before the sockets get their turn.
AT_ONCE = 20


class LayerConnection:
    """Passes the messages for all hubs, and for the sessions with `feeds`, to `handle`.

    It enters and leaves the sessions' groups one after another, so that the last request about a session decides. A
    connection can lose messages without an error, so the process also sends messages to itself, and connects again when
    they do not arrive.
    """

    def __init__(self, feeds: Mapping[str, Feed], handle: Callable[[Message], None]) -> None:
        self._feeds = feeds
        self._handle = handle
        # The name under which the channel layer delivers to this process; "" while there is no connection.
        self._channel = ""
        self._entered: set[str] = set()
        self._changed: deque[str] = deque()
        self._changing: asyncio.Task[None] | None = None
        self._receiver: asyncio.Task[None] | None = None
        self._echo: asyncio.Task[None] | None = None
        self._unheard = 0

    async def start(self) -> None:
        """Connect. If the layer is down, retry until it is back."""
        try:
            await self._connect()
        except Exception as error:  # the layer's library can raise any error
            logger.warning("The channel layer is not available, so live updates are delayed: %s", described(error))
        self._receiver = asyncio.get_running_loop().create_task(self._receive_forever())
        self._echo = asyncio.get_running_loop().create_task(self._echo_forever())

    async def stop(self) -> None:
        tasks = [task for task in (self._echo, self._receiver, self._changing) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def update(self, session_id: str) -> None:
        """Enter or leave a session's group, after its first viewer has come or its last one has gone."""
        self._changed.append(session_id)
        if self._changing is None or self._changing.done():
            self._changing = asyncio.get_running_loop().create_task(self._change_groups())

    def repair(self, session_id: str) -> None:
        """Enter a session's group again if the last try has failed."""
        if session_id not in self._entered:
            self.update(session_id)

    async def _connect(self) -> None:
        """Subscribe to the messages for all hubs and for the sessions that have viewers. Raise the layer's errors."""
        async with asyncio.timeout(TIMEOUT):
            channel = await layer().new_channel("hub")
            await layer().group_add(HUBS, channel)
        await self._stop_changing()
        self._channel, self._entered = channel, set()
        for session_id in self._feeds:
            self.update(session_id)

    async def _stop_changing(self) -> None:
        if self._changing is not None:
            self._changing.cancel()
            await asyncio.wait([self._changing])

    async def _receive_forever(self) -> None:
        while not self._channel:
            await asyncio.sleep(RECONNECT_INTERVAL)
            with suppress(Exception):  # it has been logged
                await self._connect()
        while True:
            try:
                for _ in range(AT_ONCE):
                    message = await layer().receive(self._channel)
                    self._unheard = 0
                    self._handle(message)
                await asyncio.sleep(0)
            except Exception:
                logger.exception("Could not handle a live message; its viewers catch up from the database")
                await asyncio.sleep(0.05)

    async def _echo_forever(self) -> None:
        while True:
            await asyncio.sleep(ECHO_INTERVAL)
            if not self._channel:
                continue
            if self._unheard >= MAX_UNHEARD:
                logger.warning("The channel layer does not respond, so live updates are delayed; reconnecting")
                self._unheard = 0
                await self._reconnect()
                continue
            self._unheard += 1
            with suppress(Exception):  # a failure is noticed, because nothing arrives
                async with asyncio.timeout(TIMEOUT):
                    await layer().send(self._channel, {"type": "echo"})

    async def _reconnect(self) -> None:
        """Close the layer's connections, and receive from new ones as soon as possible."""
        self._channel = ""
        with suppress(Exception):  # of any kind; without its channels the layer receives nothing
            async with asyncio.timeout(TIMEOUT):
                await layer().flush()
        await self._stop_changing()
        if self._receiver is not None:
            self._receiver.cancel()
            await asyncio.wait([self._receiver])
        self._receiver = asyncio.get_running_loop().create_task(self._receive_forever())

    async def _change_groups(self) -> None:
        while self._changed:
            session_id = self._changed.popleft()
            try:
                async with asyncio.timeout(TIMEOUT):
                    await self._enter_or_leave(session_id)
            except Exception as error:  # the layer is down: the beacon updates the viewers and tries again
                logger.warning("Could not subscribe to the live updates of session %s: %r", session_id, error)
            if (feed := self._feeds.get(session_id)) is not None:
                feed.subscribed.set()

    async def _enter_or_leave(self, session_id: str) -> None:
        is_watched, is_entered = session_id in self._feeds, session_id in self._entered
        if is_watched and not is_entered:
            await layer().group_add(group_of(session_id), self._channel)
            self._entered.add(session_id)
        elif is_entered and not is_watched:
            self._entered.discard(session_id)
            await layer().group_discard(group_of(session_id), self._channel)
