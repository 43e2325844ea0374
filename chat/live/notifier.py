"""Notify open pages that their session list changed, whatever session they show."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import Callable, Iterable

from chat.db import Threads
from chat.live.socket_queue import SocketQueue
from chat.queries.session_people import listed_pairs

logger = logging.getLogger(__name__)

NOTICE = '{"op":"rail"}'
# Only what the page shows of its own session has changed. The page may know that already.
OWN_NOTICE = '{"op":"rail","own":true}'
# Seconds. In each interval there is at most one query, and one notice to each page.
NOTIFY_INTERVAL = 0.5
# A page loads its list after a notice, which takes 10 to 20 ms of CPU time. Notices to more pages than `AT_ONCE` are
# spread over time.
AT_ONCE = 25
PAGES_PER_SECOND = 50


class SessionListNotifier:
    """Collects changes and notifies the pages of the users concerned.

    `pages` returns the open pages of this process.
    """

    def __init__(self, threads: Threads, pages: Callable[[], Iterable[SocketQueue]]) -> None:
        self._threads = threads
        self._pages = pages
        self._sessions: set[str] = set()
        # Users and what has changed for them: the id of the session that they have read, or "" for anything else.
        self._people: set[tuple[int, str]] = set()
        self._notifying: asyncio.Task[None] | None = None
        self._scheduled: dict[SocketQueue, asyncio.TimerHandle] = {}
        # The notices of pages that wait for theirs.
        self._notices: dict[SocketQueue, str] = {}

    def notify(
        self, sessions: Iterable[str] = (), people: Iterable[int] = (), readers: Iterable[tuple[int, str]] = ()
    ) -> None:
        """Soon notify the users of these sessions, these users, and the users who have read in a session."""
        self._sessions.update(sessions)
        self._people.update((user_id, "") for user_id in people)
        self._people.update(readers)
        if self._notifying is None:
            self._notifying = asyncio.get_running_loop().create_task(self._notify_all())

    def notify_everyone(self) -> None:
        """Notify all open pages of this process, because it is not known what changed."""
        self.notify(people={socket_queue.user_id for socket_queue in self._pages()})

    def close(self) -> None:
        if self._notifying is not None:
            self._notifying.cancel()
        for timer in self._scheduled.values():
            timer.cancel()

    async def _notify_all(self) -> None:
        try:
            while self._sessions or self._people:
                await self._notify_once()
                await asyncio.sleep(NOTIFY_INTERVAL)
        except Exception as error:  # usually the database is unavailable; pages also load their lists from time to time
            logger.warning("Could not notify session lists: %r", error)
        finally:
            self._notifying = None

    async def _notify_once(self) -> None:
        sessions, people = self._sessions, self._people
        self._sessions, self._people = set(), set()
        changed = defaultdict[int, set[str]](set)
        if sessions and any(True for _ in self._pages()):
            for session_id, user_id in await self._threads.run(listed_pairs, sessions):
                changed[user_id].add(session_id)
        for user_id, session_id in people:
            changed[user_id].add(session_id)
        pages = []
        for page in self._pages():
            if page.user_id not in changed:
                continue
            is_own = bool(page.session_id) and changed[page.user_id] == {page.session_id}
            if not is_own or page not in self._scheduled:
                self._notices[page] = OWN_NOTICE if is_own else NOTICE
            if page not in self._scheduled:
                pages.append(page)
        if len(pages) <= AT_ONCE:
            for page in pages:
                page.put(self._notices.pop(page))
            return
        loop, seconds = asyncio.get_running_loop(), len(pages) / PAGES_PER_SECOND
        for page in pages:
            delay = random.uniform(0, seconds)  # noqa: S311  # no secret
            self._scheduled[page] = loop.call_later(delay, self._notify_page, page)

    def _notify_page(self, page: SocketQueue) -> None:
        del self._scheduled[page]
        page.put(self._notices.pop(page))
