"""PostgreSQL connections: a bounded pool for requests, and time limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# libpq's options; those in the query of DATABASE_URL take precedence. A server that does not answer is abandoned after
# about ten seconds. Only a server that accepts writes is used, because after a failover, the old primary does not.
CONNECTION = {
    "application_name": "parley",
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "target_session_attrs": "read-write",
}
# The pool of all threads that answer requests. If a request waits for a connection for longer than `timeout` seconds,
# its client is asked to try again. If a connection cannot be opened, the pool repeats this for `reconnect_timeout`
# seconds, with pauses that double: longer than a request waits. Then the next request that needs it tries at once. With
# psycopg's five minutes, the pauses after an outage would be minutes long.
POOL = {"min_size": 2, "max_size": 20, "timeout": 5, "reconnect_timeout": 6}


def database(given: Mapping[str, Any], *, statement_seconds: float) -> dict[str, Any]:
    """Return the settings of a connection for requests, in addition to those of DATABASE_URL."""
    milliseconds = round(statement_seconds * 1000)
    limits = {
        "statement_timeout": milliseconds,
        # Shorter than the statement's timeout, so that the error shows that it waited for a lock.
        "lock_timeout": round(milliseconds * 0.8),
        # A limit is needed because an idle transaction keeps its locks.
        "idle_in_transaction_session_timeout": 30_000,
    }
    return {
        "ENGINE": "chat.overrides.postgres",
        "OPTIONS": {**CONNECTION, **given.get("OPTIONS", {}), "pool": POOL, "limits": limits},
        # Django requires 0 with a pool. A connection that a restart of the database has closed is found before a
        # request uses it.
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": True,
    }
