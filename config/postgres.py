"""PostgreSQL connections: a bounded pool for requests, and time limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# libpq's options; those in the query of DATABASE_URL take precedence. A server that does not answer is given up after
# some ten seconds, and only one that takes writes is used: after a failover the old primary is none.
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
# Of all threads that answer requests together; who waits for one for longer than `timeout` is asked to try again.
POOL = {"min_size": 2, "max_size": 20, "timeout": 5}


def database(given: Mapping[str, Any], *, statement_seconds: float) -> dict[str, Any]:
    """Return the settings of a connection for requests, beside those that DATABASE_URL gives."""
    milliseconds = round(statement_seconds * 1000)
    limits = {
        "statement_timeout": milliseconds,
        # Sooner than the statement's, so that the error says what it waited for.
        "lock_timeout": round(milliseconds * 0.8),
        # A transaction keeps its locks while its client is silent.
        "idle_in_transaction_session_timeout": 30_000,
    }
    return {
        "ENGINE": "chat.overrides.postgres",
        "OPTIONS": {**CONNECTION, **given.get("OPTIONS", {}), "pool": POOL, "limits": limits},
        # With a pool there are no persistent connections; one that a restart of the database has cut is found out
        # before it costs anybody an answer.
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": True,
    }
