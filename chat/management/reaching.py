"""Connect to the database before a process or a command uses it, and say what to do if that fails."""

from __future__ import annotations

from typing import Any

from django.db import DatabaseError, InterfaceError, NotSupportedError, OperationalError, connection

from chat.db import sqlstate

# The classes of PostgreSQL's error codes for connections: broken, refused, to an unknown database, too many, or ended
# by the server. An error that libpq reports has no code.
OF_CONNECTIONS = ("", "08", "28", "3D", "53", "57")


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


def explained(error: DatabaseError) -> str:
    """Return the reason of an error, in one line, and what to do."""
    reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
    if connection.vendor == "postgresql":
        advice = getattr(getattr(error.__cause__, "diag", None), "message_hint", None) or ""
        if isinstance(error, OperationalError | InterfaceError) and sqlstate(error)[:2] in OF_CONNECTIONS:
            advice = "Check DATABASE_URL, and that the database server is running and accepts connections."
        return f"{reason}. {advice}".strip()
    path = connection.settings_dict["NAME"]
    return (
        f"{path}: {reason}. Check that Parley's account may write to this file and to its folder. If the file is "
        "damaged, restore a backup."
    )
