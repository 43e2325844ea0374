"""Checks and preparations of each process before it starts: the configuration, the data folder and the database."""

from __future__ import annotations

from collections.abc import Callable

from django.core import checks
from django.db import DatabaseError

from chat.management.reaching import explained, require_database, require_locks, require_utf8
from chat.management.updating import BackupError, update_database
from chat.schema import WrongSchemaError
from chat.services.maintenance.files_mark import WrongFilesError
from chat.services.maintenance.key_mark import WrongKeyError
from config.data_folder import protect_data


def check_configuration(report: Callable[[str], object]) -> None:
    """Report the findings of the system checks, one per line. Raise SystemExit if one is serious."""
    found = [message for message in checks.run_checks() if not message.is_silenced()]
    for message in found:
        report(f"{message.msg} {message.hint or ''}".strip())
    if any(message.is_serious() for message in found):
        raise SystemExit(1)


def prepare_database(report: Callable[[str], None]) -> None:
    """Protect the data folder, migrate the database, and check the files and the key.

    Raise SystemExit with a message that tells the operator what to do.
    """
    protect_data()
    try:
        require_database()
        require_utf8()
        require_locks()
        update_database(report)
    except (WrongSchemaError, WrongFilesError, WrongKeyError, BackupError) as error:
        raise SystemExit(f"Parley cannot start: {error}") from error
    except DatabaseError as error:
        raise SystemExit(f"Parley cannot use its database: {explained(error)}") from error
