"""A lock for each user, so that the requests of one user run one after another without delaying other users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from chat.overrides.postgres.lending import return_connection


class TooManyWaiting(Exception):  # an answer to a client, not a failure of the server
    """Too many requests of the user are already waiting."""


class UserLocks:
    """A lock for each user, which exists only while it is used. Thread-safe.

    A thread that waits for a lock or holds it has no connection of the database's pool, unless it queries again.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._locks: dict[int, Lock] = {}
        self._wanted: Counter[int] = Counter()

    @contextmanager
    def hold(self, person: int, *, most: int | None = None) -> Iterator[None]:
        """Wait for the user's lock and hold it.

        Raise TooManyWaiting if `most` requests of the user already wait or hold it.
        """
        with self._lock:
            if most is not None and self._wanted[person] >= most:
                raise TooManyWaiting
            self._wanted[person] += 1
            lock = self._locks.setdefault(person, Lock())
        return_connection()
        try:
            with lock:
                yield
        finally:
            with self._lock:
                self._wanted[person] -= 1
                if not self._wanted[person]:
                    del self._wanted[person], self._locks[person]
