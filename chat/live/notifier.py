"""Rings at the pages of those whose list of sessions has changed, whatever these pages show."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from chat import access
from chat.db import Threads
from chat.live.socket_queue import SocketQueue

logger = logging.getLogger(__name__)

RING = '{"op":"rail"}'
# However much happens: one question to the database, one ring.
RING_INTERVAL = 0.5


class Doorbells:
    """`pages` gives the open pages of this process."""

    def __init__(self, threads: Threads, pages: Callable[[], Iterable[SocketQueue]]) -> None:
        self._threads = threads
        self._pages = pages
        self._sessions: set[str] = set()
        self._people: set[int] = set()
        self._ringing: asyncio.Task[None] | None = None

    def hear(self, sessions: Iterable[str] = (), people: Iterable[int] = ()) -> None:
        """Something has stirred in these sessions, or changed for these people alone."""
        self._sessions.update(sessions)
        self._people.update(people)
        if self._ringing is None:
            self._ringing = asyncio.get_running_loop().create_task(self._ring_all())

    def close(self) -> None:
        if self._ringing is not None:
            self._ringing.cancel()

    async def _ring_all(self) -> None:
        try:
            while self._sessions or self._people:
                await self._ring()
                await asyncio.sleep(RING_INTERVAL)
        except Exception as error:  # whatever it is, most likely the database: pages look by themselves now and then
            logger.warning("Session lists were not notified: %r", error)
        finally:
            self._ringing = None

    async def _ring(self) -> None:
        sessions, people = self._sessions, self._people
        self._sessions, self._people = set(), set()
        if sessions and any(True for _ in self._pages()):
            people = people | await self._threads.run(access.people_in, sessions)
        for outbox in self._pages():
            if outbox.user_id in people:
                outbox.put(RING)
