"""Give the connections that requests share back before a request ends."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS, connections


def return_connection() -> None:
    """Give the calling thread's connection back to the pool, before something that may take long without it.

    The next query takes one again. The pool is small, so requests that wait for other machines, for places or for slow
    clients would use it up for everyone. No effect in a transaction, and where a thread keeps its connection: in
    `chat.db.Threads`, and with SQLite.
    """
    shared = connections[DEFAULT_DB_ALIAS]
    if shared.settings_dict["OPTIONS"].get("pool") and not shared.in_atomic_block:
        shared.close()
