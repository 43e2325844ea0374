"""The base of commands that work on the stored data."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from chat import schema
from config.environment import MOST_DAYS


def require_data(*, current: bool = True) -> None:
    """Refuse a database that is not there or not prepared, without making one. Raises CommandError.

    `current`: it must have all migrations of this version, else any.
    """
    if connection.vendor == "sqlite":
        path = Path(str(connection.settings_dict["NAME"]))
        if not path.exists():
            raise CommandError(
                f"There is no database at {path}. Set PARLEY_DATA or DATABASE_URL as the server has it; a server's "
                "first start makes the database."
            )
    try:
        missing = schema.missing_migrations()
        is_prepared = not missing or (not current and bool(schema.applied_migrations()))
    except DatabaseError as error:
        raise CommandError(f"The database cannot be used: {str(error).strip()} (DATABASE_URL).") from error
    if not is_prepared:
        raise CommandError(
            f"The database lacks {len(missing)} migrations. Start the server, or run manage.py migrate. If that was "
            "done, set PARLEY_DATA or DATABASE_URL as the server has it."
        )


def number_of_days(text: str) -> int:
    """Read an option that is a number of days. Raises ArgumentTypeError."""
    if text.isdecimal() and int(text[:20]) <= MOST_DAYS:
        return int(text)
    raise ArgumentTypeError(f"{text[:20]!r} is not a number of days from 0 to {MOST_DAYS}")


class DataCommand(BaseCommand):
    """A command that needs the database of a server. Refuses before `handle` where there is none."""

    needs_current = True

    def execute(self, *args: Any, **options: Any) -> Any:
        require_data(current=self.needs_current)
        return super().execute(*args, **options)
