"""Django's password hashers, a few at a time: a hash takes a core for a third of a second."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from chat.overrides.postgres.lending import return_connection

# Half of the cores stay free for everything else.
AT_ONCE = max(1, (os.cpu_count() or 2) // 2)
PATIENCE_SECONDS = 10.0
_hashing = BoundedSemaphore(AT_ONCE)


class HashersBusy(Exception):  # an answer to a client, not a failure of ours
    """So many passwords are being checked that this one has not had its turn."""


@contextmanager
def hashing() -> Iterator[None]:
    """Wait for a turn to hash. Raises HashersBusy."""
    return_connection()
    if not _hashing.acquire(timeout=PATIENCE_SECONDS):
        raise HashersBusy
    try:
        yield
    finally:
        _hashing.release()


class BoundedHasher(PBKDF2PasswordHasher):
    """Django's default, with the same results."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        with hashing():
            return super().encode(password, salt, iterations)
