"""The base class of commands that work on the stored data."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any, Literal

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from chat import schema
from chat.checks import DATA
from chat.db import without_statement_timeout
from chat.management.reaching import explained, require_database
from config.environment import MAX_DAYS


def require_data(*, current: bool = True) -> None:
    """Raise CommandError if the database is missing or not prepared, without creating one.

    With `current`, the database must have all migrations of this version. Otherwise it must have at least one.
    """
    if connection.vendor == "sqlite":
        path = Path(str(connection.settings_dict["NAME"]))
        try:
            is_missing = not path.exists()
        except OSError as error:  # the folder belongs to another account
            raise CommandError(
                f"Cannot use the database: {path}: {error.strerror}. Run the command as the account that owns the "
                "folder."
            ) from error
        if is_missing:
            raise CommandError(
                f"There is no database at {path}. Set PARLEY_DATA or DATABASE_URL to the server's value. If the server "
                "has never run, start it: the first start creates the database."
            )
    try:
        require_database()
        missing = schema.missing_migrations()
        is_prepared = not missing or (not current and bool(schema.applied_migrations()))
    except DatabaseError as error:
        raise CommandError(f"Cannot use the database: {explained(error)}") from error
    if not is_prepared:
        raise CommandError(
            f"The database has {len(missing)} unapplied migration(s). Start the server, or run manage.py "
            "migrate. If you have, set PARLEY_DATA or DATABASE_URL to the server's value."
        )


def number_of_days(text: str) -> int:
    """Parse an option that is a number of days. Raise ArgumentTypeError."""
    if text.isdecimal() and int(text[:20]) <= MAX_DAYS:
        return int(text)
    raise ArgumentTypeError(f"{text[:20]!r} is not a number of days from 0 to {MAX_DAYS}")


class DataCommand(BaseCommand):
    """A command that needs the database of a server. Without one, it fails before `handle`.

    Its statements may take longer than those of requests, because some of them read or vacuum whole tables.
    """

    needs_current = True
    # The configuration of agents may be wrong: backups continue, and administrators who are locked out get links.
    requires_system_checks: tuple[str, ...] | Literal["__all__"] = (DATA,)

    def execute(self, *args: Any, **options: Any) -> Any:
        require_data(current=self.needs_current)
        try:
            with without_statement_timeout():
                return super().execute(*args, **options)
        except (OperationalError, InterfaceError) as error:
            raise CommandError(f"Cannot use the database: {explained(error)}") from error
