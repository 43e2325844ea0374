"""Collect how far users have read, and store it for all readers of a session together."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from chat.db import Threads
from chat.services.sessions import user_state

# Seconds for which marks are collected. Only the last mark of each user counts.
INTERVAL = 1.0


class ReadMarks:
    """The read marks of this process that are not stored yet. A crash loses those of the last interval."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._marks = defaultdict[str, dict[int, int]](dict)
        self._storing: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    async def store(self, session_id: str, user_id: int, revision: int) -> None:
        """Store the user's read mark with the next batch, and wait for it. Raise the errors of the database."""
        marks = self._marks[session_id]
        marks[user_id] = max(revision, marks.get(user_id, 0))
        if self._storing is None:
            self._storing = asyncio.get_running_loop().create_task(self._store_soon())
        await asyncio.shield(self._storing)

    async def close(self) -> None:
        """Store the marks that are waiting."""
        self._closing.set()
        if self._storing is not None:
            await asyncio.wait([self._storing])

    async def _store_soon(self) -> None:
        try:
            async with asyncio.timeout(INTERVAL):
                await self._closing.wait()
        except TimeoutError:
            pass
        marks, self._marks, self._storing = self._marks, defaultdict(dict), None
        for session_id, revisions in marks.items():
            await self._threads.run(user_state.mark_all_read, session_id=session_id, revisions=revisions)
