"""`manage.py restore`: restore a backup into an empty or an existing installation."""

from __future__ import annotations

from argparse import ArgumentParser
from contextlib import closing
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from chat.db import own_connection
from chat.management import reaching
from chat.management.backup import restoring
from chat.management.backup.archive import Archive, BackupError
from chat.management.paths import explained, require_own_account

NEXT = (
    "Restored. Logins, links, tokens, shares and sessions that were removed since the backup are back. Before the "
    "server goes online, run manage.py migrate, manage.py verify and manage.py endlogins --tokens."
)


class Command(BaseCommand):
    help = (
        "Restore a backup of `manage.py backup`. Stop all servers first. Existing data is not overwritten without "
        "--replace."
    )
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django's declaration; a new place may be incomplete

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="the backup archive")
        parser.add_argument(
            "--check", action="store_true", help="only check that the archive is complete and undamaged"
        )
        parser.add_argument("--replace", action="store_true", help="move existing data to PARLEY_DATA/backups first")

    def handle(self, *args: Any, path: Path, check: bool = False, replace: bool = False, **options: Any) -> str:
        # A pool would open more connections, which would look like those of a server.
        own_connection(limits={"statement_timeout": 0})
        try:
            with closing(Archive(path)) as archive:
                archive.check()
                made = f"{archive.manifest['made_at']}, {archive.manifest['database']}, {len(archive.entries)} entries"
                if check:
                    return f"{path} is complete ({made})."
                require_own_account(Path(settings.DATA_DIR))
                restoring.require_usable(archive)
                restoring.require_places(archive)
                if not replace:
                    restoring.require_empty()
                restoring.restore(archive, self.stdout.write)
        except BackupError as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(explained(error, Path(settings.DATA_DIR))) from error
        except DatabaseError as error:
            raise CommandError(reaching.explained(error)) from error
        return NEXT
