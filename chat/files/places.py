"""One lock per user: a user's files are read one after the other, without delaying other users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from chat.overrides.postgres.lending import return_connection


class NoPlace(Exception):  # an answer to a client, not a failure of ours
    """So many requests of a person wait for their place already that this one does not."""


class OnePerPerson:
    """A lock for each user, which exists only while it is in use. Thread-safe.

    Who waits for it, or has it, has no connection of the database's pool.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._locks: dict[int, Lock] = {}
        self._wanted: Counter[int] = Counter()

    @contextmanager
    def place(self, person: int, *, most: int | None = None) -> Iterator[None]:
        """Wait for the person's place, and hold it. Raises NoPlace if `most` requests of theirs wait or hold it."""
        with self._lock:
            if most is not None and self._wanted[person] >= most:
                raise NoPlace
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
