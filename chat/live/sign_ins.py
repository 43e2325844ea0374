"""Look up who connects a socket: in threads of their own and for a limited time, so that no socket waits unanswered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from chat.db import Threads

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 4
# Seconds that a lookup may take, with the wait for a thread. A page gives its socket up after ten.
PATIENCE = 5.0
# While all threads have been busy with one lookup each for so long, the database hangs: nothing waits behind them.
HANGING = 1.0
# Milliseconds after which PostgreSQL gives up, if it works at all.
LIMITS = {"statement_timeout": 4000, "lock_timeout": 3000}


class SignIns:
    """Runs the lookups of sockets that connect."""

    def __init__(self) -> None:
        self._threads = Threads(THREADS, "parley-sign-in", limits=LIMITS)
        # When the lookups that have a thread began.
        self._began: dict[object, float] = {}

    async def look_up(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that reads rows. Raises TimeoutError if the database does not answer, at once if it hangs."""
        if self._is_hanging():
            raise TimeoutError("the database hangs")

        def timed() -> T:
            lookup = object()
            self._began[lookup] = time.monotonic()
            try:
                return function(*args, **kwargs)
            finally:
                del self._began[lookup]

        async with asyncio.timeout(PATIENCE):
            return await self._threads.run(timed)

    async def close(self) -> None:
        await self._threads.close()

    def _is_hanging(self) -> bool:
        began = list(self._began.values())
        return len(began) == THREADS and time.monotonic() - max(began) > HANGING
