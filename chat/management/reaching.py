"""Connect to the database before a process or a command uses it, and say what to do if that fails."""

from __future__ import annotations

from typing import Any

from django.db import DatabaseError, connection


def require_database() -> None:
    """Raise DatabaseError with the reason if PostgreSQL cannot be used.

    The pool of connections would log several warnings, and then only report that it got no connection in time.
    """
    if connection.vendor == "postgresql":
        postgres: Any = connection  # the stubs lack the driver
        parameters = postgres.get_connection_params()
        parameters.pop("pool", None)
        with postgres.wrap_database_errors:
            postgres.Database.connect(**parameters).close()


def explained(error: DatabaseError) -> str:
    """Return the reason of an error, in one line, and what to do."""
    reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
    if connection.vendor == "postgresql":
        return f"{reason}. Check DATABASE_URL, and that the database server is running and accepts connections."
    path = connection.settings_dict["NAME"]
    return (
        f"{path}: {reason}. Check that Parley's account may write to this file and to its folder. If the file is "
        "damaged, restore a backup."
    )
