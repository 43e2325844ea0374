"""Keep a channel in the channel layer's groups of the sessions that are watched, and in no others."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from chat.bus.publisher import group_of, layer

logger = logging.getLogger(__name__)

PATIENCE = 5.0


class Subscriptions:
    """Enters and leaves groups one after another, so that the last request about a session decides.

    `watched` returns the event to set once a session's group has been entered, or None if the session has no viewers.
    """

    def __init__(self, channel: str, watched: Callable[[str], asyncio.Event | None]) -> None:
        self._channel = channel
        self._watched = watched
        self._entered: set[str] = set()
        self._queue: deque[str] = deque()
        self._task: asyncio.Task[None] | None = None

    def update(self, session_id: str) -> None:
        """Enter or leave a session's group, after its first viewer has come or its last one has gone."""
        self._queue.append(session_id)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    def has(self, session_id: str) -> bool:
        return session_id in self._entered

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        try:
            while self._queue:
                await self._settle(self._queue.popleft())
        finally:
            self._task = None

    async def _settle(self, session_id: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._enter_or_leave(session_id)
        except Exception as error:  # the layer is down: the beacon updates the viewers and tries again
            logger.warning("Could not subscribe to the live updates of session %s: %r", session_id, error)
        if (event := self._watched(session_id)) is not None:
            event.set()

    async def _enter_or_leave(self, session_id: str) -> None:
        watched = self._watched(session_id) is not None
        if watched and session_id not in self._entered:
            await layer().group_add(group_of(session_id), self._channel)
            self._entered.add(session_id)
        elif not watched and session_id in self._entered:
            self._entered.discard(session_id)
            await layer().group_discard(group_of(session_id), self._channel)
