"""Look up the user of a new socket, in separate threads and with a time limit, so that every socket gets an answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from django.contrib.auth import get_user
from django.http import HttpRequest

from chat.access import session_for
from chat.db import Threads
from chat.models import SessionRole, User
from chat.services.messages.senders import sender_in
from chat.services.people.second_factor import is_missing

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 4
# Seconds that a lookup may take, including the wait for a thread. A page gives up its socket after ten.
PATIENCE = 5.0
# Seconds. If all threads have been busy with one lookup each for this long, the database hangs. Then new lookups fail.
HANGING = 1.0
# Milliseconds after which PostgreSQL cancels a query, if the server responds at all.
LIMITS = {"statement_timeout": 4000, "lock_timeout": 3000}


class SignIns:
    """Runs the lookups for sockets that connect."""

    def __init__(self) -> None:
        self._threads = Threads(THREADS, "parley-sign-in", limits=LIMITS)
        # When the lookups that have a thread began.
        self._began: dict[object, float] = {}

    async def look_up(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that reads rows.

        Raise TimeoutError if the database is too slow, or immediately if it hangs.
        """
        began = list(self._began.values())
        if len(began) == THREADS and time.monotonic() - max(began) > HANGING:
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


def user_of_browser(scope: Mapping[str, Any]) -> User | None:
    """Return the user of a browser's session, as Django's middleware does; None if a second factor is missing."""
    if "session" not in scope:
        return None
    session = scope["session"]
    request = HttpRequest()
    request.session = session
    user = scope["user"] if "user" in scope else get_user(request)
    return user if isinstance(user, User) and not is_missing(user, session) else None


def role_and_name(user: User, session_id: str) -> tuple[SessionRole, str]:
    """Return a user's role in a session, and their name there. Raise NoSuchSession."""
    session, role = session_for(user, session_id)
    return role, sender_in(session, user)
