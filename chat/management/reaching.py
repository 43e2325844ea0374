"""Connect to the database before a process or a command uses it, and say what to do if that fails."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from django.db import DatabaseError, InterfaceError, NotSupportedError, OperationalError, connection

from chat.db import sqlstate

# The classes of PostgreSQL's error codes for connections: broken, refused, to an unknown database, too many, or ended
# by the server. An error that libpq reports has no code.
OF_CONNECTIONS = ("", "08", "28", "3D", "53", "57")

# What to do after an error of SQLite, by words in its text.
OF_SQLITE = {
    "is locked": "Another process writes to it for long. Run the command again later, or stop the server first.",
    "is full": "Free some disk space there, then run the command again.",
}
DEFAULT_OF_SQLITE = (
    "Check that Parley's account may write to this file and to its folder. If the file is damaged, restore a backup."
)

Execute = Callable[[str], Any]  # executes SQL and returns a cursor


def require_database() -> None:
    """Raise DatabaseError with the reason if PostgreSQL cannot be used.

    The pool of connections would log several warnings, and then only report that it got no connection in time.
    """
    if connection.vendor == "postgresql":
        _connect().close()


def require_locks() -> None:
    """Raise DatabaseError if a pooler executes the statements of one connection on several of PostgreSQL's.

    A lock would then stay on one that the pooler gives to others, so that a start may wait for it forever, and workers
    that run would count as killed.
    """
    if connection.vendor == "postgresql":
        with connection.wrap_database_errors, _connect() as first, _connect() as second:
            is_usable = has_locks(first.execute, second.execute)
        if not is_usable:
            raise NotSupportedError(
                "DATABASE_URL leads to a pooler in transaction mode, in which locks do not work. Set it to PostgreSQL "
                "itself, or to a pooler in session mode"
            )


def has_locks(first: Execute, second: Execute) -> bool:
    """Return whether a lock of one connection excludes another connection, and can be released."""
    key = secrets.randbits(62)
    first(f"SELECT pg_advisory_lock({key})")
    (is_shared,) = second(f"SELECT pg_try_advisory_lock({key})").fetchone()
    (is_released,) = first(f"SELECT pg_advisory_unlock({key})").fetchone()
    return is_released and not is_shared


def require_utf8() -> None:
    """Raise DatabaseError if PostgreSQL's database has another encoding, in which most texts could not be stored."""
    if connection.vendor == "postgresql":
        connection.ensure_connection()
        encoding = connection.connection.info.parameter_status("server_encoding")
        if encoding not in (None, "UTF8"):  # a pooler may not report it
            raise NotSupportedError(
                f"the database has the encoding {encoding}, but Parley needs UTF8. Create a database with CREATE "
                "DATABASE name ENCODING 'UTF8' TEMPLATE template0, and set DATABASE_URL to it"
            )


def _connect() -> Any:
    """Open a connection that does not belong to Django's pool, and commits each statement. Raise DatabaseError."""
    postgres: Any = connection  # the stubs lack the driver
    parameters = postgres.get_connection_params()
    parameters.pop("pool", None)
    with postgres.wrap_database_errors:
        return postgres.Database.connect(**parameters, autocommit=True)


def explained(error: DatabaseError | InterfaceError) -> str:
    """Return the reason of an error, in one line, and what to do."""
    reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
    if connection.vendor == "postgresql":
        advice = getattr(getattr(error.__cause__, "diag", None), "message_hint", None) or ""
        if isinstance(error, OperationalError | InterfaceError) and sqlstate(error)[:2] in OF_CONNECTIONS:
            advice = "Check DATABASE_URL, and that the database server is running and accepts connections."
        return f"{reason}. {advice}".strip()
    advice = next((advice for words, advice in OF_SQLITE.items() if words in reason), DEFAULT_OF_SQLITE)
    return f"{connection.settings_dict['NAME']}: {reason}. {advice}"
