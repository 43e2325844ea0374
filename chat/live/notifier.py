"""Notify open pages that their session list changed, whatever session they show."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from chat import access
from chat.db import Threads
from chat.live.socket_queue import SocketQueue

logger = logging.getLogger(__name__)

NOTICE = '{"op":"rail"}'
# However much happens in this many seconds: one query, and one notice to each page.
NOTIFY_INTERVAL = 0.5


class SessionListNotifier:
    """Collect changes, and notify the pages of the users concerned. `pages` gives the open pages of this process."""

    def __init__(self, threads: Threads, pages: Callable[[], Iterable[SocketQueue]]) -> None:
        self._threads = threads
        self._pages = pages
        self._sessions: set[str] = set()
        self._people: set[int] = set()
        self._notifying: asyncio.Task[None] | None = None

    def notify(self, sessions: Iterable[str] = (), people: Iterable[int] = ()) -> None:
        """Notify the users of these sessions, and these users, soon."""
        self._sessions.update(sessions)
        self._people.update(people)
        if self._notifying is None:
            self._notifying = asyncio.get_running_loop().create_task(self._notify_all())

    def notify_everyone(self) -> None:
        """Notify all open pages of this process: what changed is not known."""
        self.notify(people={socket_queue.user_id for socket_queue in self._pages()})

    def close(self) -> None:
        if self._notifying is not None:
            self._notifying.cancel()

    async def _notify_all(self) -> None:
        try:
            while self._sessions or self._people:
                await self._notify_once()
                await asyncio.sleep(NOTIFY_INTERVAL)
        except Exception as error:  # whatever it is, most likely the database: pages look by themselves now and then
            logger.warning("Session lists were not notified: %r", error)
        finally:
            self._notifying = None

    async def _notify_once(self) -> None:
        sessions, people = self._sessions, self._people
        self._sessions, self._people = set(), set()
        if sessions and any(True for _ in self._pages()):
            people = people | await self._threads.run(access.people_in, sessions)
        for socket_queue in self._pages():
            if socket_queue.user_id in people:
                socket_queue.put(NOTICE)
