"""Django's password hashers, limited to a few at a time, because a hash occupies a core for a third of a second."""

from __future__ import annotations

import os
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from chat.origin import current_origin, network_of
from chat.overrides.postgres.lending import return_connection

# Half of the cores stay free for other work.
AT_ONCE = max(1, (os.cpu_count() or 2) // 2)
PATIENCE_SECONDS = 10.0
# The most hashes of one network that wait, about three seconds of work. Further ones are refused immediately.
MAX_WAITING = 8 * AT_ONCE


class HashersBusy(Exception):  # an answer to a client, not a failure of the server
    """Too many passwords are being checked. This one was refused, or has waited PATIENCE_SECONDS without a turn."""


class Turns:
    """Turns to hash, given to networks in rotation, so that many guesses from one do not delay sign-ins from others."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._free = AT_ONCE
        self._waiting: OrderedDict[str, deque[Event]] = OrderedDict()

    def take(self, network: str) -> None:
        """Wait for a turn. End it with `give_back`. Raise HashersBusy."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
            queue = self._waiting.setdefault(network, deque())
            if len(queue) >= MAX_WAITING:
                raise HashersBusy
            turn = Event()
            queue.append(turn)
        if turn.wait(PATIENCE_SECONDS):
            return
        with self._lock:
            if turn.is_set():  # given after the wait ended
                return
            self._leave(network, turn)
        raise HashersBusy

    def give_back(self, network: str) -> None:
        """End a turn, and give the next one to another network, if one waits."""
        with self._lock:
            following = next((each for each in self._waiting if each != network), network)
            if following not in self._waiting:
                self._free += 1
                return
            turn = self._waiting[following][0]
            self._leave(following, turn)
            if following in self._waiting:
                self._waiting.move_to_end(following)
            turn.set()

    def _leave(self, network: str, turn: Event) -> None:
        queue = self._waiting[network]
        queue.remove(turn)
        if not queue:
            del self._waiting[network]


_turns = Turns()


@contextmanager
def hashing() -> Iterator[None]:
    """Wait for a turn to hash, in the queue of the request's network. Raise HashersBusy."""
    return_connection()
    network = network_of(current_origin().address)
    _turns.take(network)
    try:
        yield
    finally:
        _turns.give_back(network)


class BoundedHasher(PBKDF2PasswordHasher):
    """Django's default hasher, with the same results and a limit on simultaneous hashes."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        with hashing():
            return super().encode(password, salt, iterations)
