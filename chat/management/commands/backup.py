"""`manage.py backup`: write everything that Parley keeps into one archive."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError

from chat.management.backup import making
from chat.management.backup.archive import BackupError
from chat.management.data_command import DataCommand


class Command(DataCommand):
    help = (
        "Write the database, the attached files, the files of workspaces and the secret key that Parley made into one "
        "archive, beside running servers. Keep it as safe as the server: it can be used to sign in as anyone."
    )

    # A backup is made between the installation of a new version and its first start, too.
    needs_current = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", nargs="?", type=Path, help="a new file; without it, in PARLEY_DATA/backups")
        parser.add_argument("--keep", type=int, help="delete all backups in PARLEY_DATA/backups but the last KEEP")

    def handle(self, *args: Any, path: Path | None = None, keep: int | None = None, **options: Any) -> str:
        if keep is not None and (keep < 1 or path is not None):
            raise CommandError("--keep is 1 or more, and for backups in PARLEY_DATA/backups.")
        path = path or making.folder() / f"{datetime.now():{making.NAME}}"
        if path.exists():
            raise CommandError(f"{path} exists already.")
        try:
            counts = making.make(path, self.stderr.write)
            if keep is not None:
                making.delete_older(keep)
        except (BackupError, DatabaseError, OSError) as error:
            raise CommandError(f"The backup was not made: {error}") from error
        contents = ", ".join(["the database", *(f"{count} {kind}" for kind, count in sorted(counts.items()))])
        return f"{path}: {contents}; {path.stat().st_size / 1e6:.1f} MB."
