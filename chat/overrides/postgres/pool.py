"""A pool that replaces all its idle connections when one of them is dead."""

from __future__ import annotations

from threading import Lock
from time import monotonic
from typing import Any

from psycopg import Connection
from psycopg_pool import ConnectionPool


class Pool(ConnectionPool[Connection[Any]]):
    """A pool that checks each connection before it lends it.

    A restart of the server or of a pooler ends all connections. psycopg's pool would find and replace them one by one,
    with longer and longer pauses, so that the next requests would get no connection in time.
    """

    def __init__(self, **options: Any) -> None:
        self._drain_lock = Lock()
        self._last_drain = 0.0
        super().__init__(check=self.require_alive, **options)

    def require_alive(self, lent: Connection[Any]) -> None:
        """Raise an error if a connection does not work, after replacing those that are idle."""
        started = monotonic()
        try:
            self.check_connection(lent)
        except Exception:
            self._drain_once(started)
            raise

    def _drain_once(self, started: float) -> None:
        """Replace the idle connections, unless this was done after `started`: then they are new."""
        with self._drain_lock:
            if started > self._last_drain:
                self.drain()
                self._last_drain = monotonic()
