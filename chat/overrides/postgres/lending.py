"""Return connections to the pool before a request ends, because requests share them."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS, connections


def return_connection() -> None:
    """Return the calling thread's connection to the pool, before something that may take long without it.

    The next query takes a connection again. The pool is small, so requests that wait for other machines, for places or
    for slow clients would use it up. This has no effect in a transaction, or if a thread keeps its connection, as in
    `chat.db.Threads` and with SQLite.
    """
    shared = connections[DEFAULT_DB_ALIAS]
    if shared.settings_dict["OPTIONS"].get("pool") and not shared.in_atomic_block:
        shared.close()
