"""Limit requests that read a whole session, such as for the next request to a model, to one per user at a time.

Reading a session of tens of thousands of messages uses a core for seconds, and a hundred megabytes. Many such requests
of one user at the same time would make the server unusable for others. Their answers have tens of megabytes, which
stay in memory until the client has read them, so a user gets no further answer while too much is unread.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import RLock

from django.http import HttpResponse

from chat.files.user_locks import TooManyWaiting, UserLocks
from chat.limits.rates import RateLimited
from chat.models import User

# The most requests of a user that wait or are being answered.
MAX_AT_ONCE = 20
RETRY_SECONDS = 5.0
# In bytes. A user with this much in unread answers gets no further one. A single answer may be larger.
MAX_UNREAD = 64_000_000


class _Unread:
    """Counts the bytes of answers that are being sent, by user. Thread-safe."""

    def __init__(self) -> None:
        self._lock = RLock()  # the garbage collector may finalize an answer while its thread holds the lock
        self._bytes: Counter[int] = Counter()

    def of(self, user_id: int) -> int:
        with self._lock:
            return self._bytes.get(user_id, 0)

    def keep(self, user_id: int, response: HttpResponse) -> HttpResponse:
        """Count an answer until it is closed, or deleted because a middleware has replaced it."""
        size = len(response.content)
        with self._lock:
            self._bytes[user_id] += size
        forget = weakref.finalize(response, self._forget, user_id, size)
        forget.atexit = False
        response._resource_closers.append(forget)  # type: ignore[attr-defined]  # the stubs lack it
        return response

    def _forget(self, user_id: int, size: int) -> None:
        with self._lock:
            self._bytes[user_id] -= size
            if self._bytes[user_id] <= 0:
                del self._bytes[user_id]


_locks = UserLocks()
_unread = _Unread()


@contextmanager
def reading_whole(user: User) -> Iterator[Callable[[HttpResponse], HttpResponse]]:
    """Wait until no other request of the user reads a whole session. Yield the function that counts the answer.

    Check the user's access inside the block, because it may end during the wait. Raise RateLimited if too many requests
    wait, or if too much of earlier answers is unread.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(_locks.hold(user.pk, most=MAX_AT_ONCE))
        except TooManyWaiting:
            raise RateLimited(RETRY_SECONDS) from None
        if _unread.of(user.pk) >= MAX_UNREAD:
            raise RateLimited(RETRY_SECONDS)
        yield lambda response: _unread.keep(user.pk, response)
