"""`manage.py backup`: write all data of Parley into one archive."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import DatabaseError

from chat.management import reaching
from chat.management.backup import making
from chat.management.backup.archive import BackupError
from chat.management.data_command import DataCommand
from chat.management.paths import account, explained, give_to_owner


class Command(DataCommand):
    help = (
        "Back up the database, the attached files, the session files and the secret key that Parley generated into "
        "one archive. Servers can keep running. Protect the archive: anyone who has it can sign in as any user."
    )

    # A backup can also be made after a new version was installed and before its first start.
    needs_current = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "path", nargs="?", type=Path, help="the file to create; default: a new file in PARLEY_DATA/backups"
        )
        parser.add_argument("--keep", type=int, help="keep only the newest KEEP backups in PARLEY_DATA/backups")

    def handle(self, *args: Any, path: Path | None = None, keep: int | None = None, **options: Any) -> str:
        if keep is not None and (keep < 1 or path is not None):
            raise CommandError("--keep must be 1 or more, and cannot be combined with a path.")
        is_default = path is None
        path = path or making.folder() / f"{datetime.now():{making.NAME}}"
        try:
            if path.is_dir():
                raise CommandError(f"{path} is a folder. Name a new file in it, such as {path / 'parley.tar'}.")
            if path.exists():
                raise CommandError(f"{path} already exists. Choose another file.")
            try:
                counts = making.make(path, self.stderr.write)
            finally:
                if is_default:
                    self._give_to_owner(path)
            if keep is not None:
                making.delete_older(keep)
        except BackupError as error:
            raise CommandError(f"The backup failed: {error}") from error
        except OSError as error:
            raise CommandError(f"The backup failed: {self._explained(error, path)}") from error
        except DatabaseError as error:
            raise CommandError(f"The backup failed: {reaching.explained(error)}") from error
        contents = ", ".join(["the database", *(f"{count} {kind}" for kind, count in sorted(counts.items()))])
        return f"{path}: {contents}; {path.stat().st_size / 1e6:.1f} MB."

    def _give_to_owner(self, path: Path) -> None:
        """Give a backup of root to the account of the servers, which could otherwise make no backups or updates."""
        try:
            give_to_owner(Path(settings.DATA_DIR), making.folder(), path)
        except OSError as error:  # a network file system on which root has no rights
            self.stderr.write(f"Parley's account cannot use {error.filename or path}: {error.strerror}.")

    def _explained(self, error: OSError, path: Path) -> str:
        """Explain an error. Backups of earlier versions that ran as root left a folder that only root can use."""
        folder, owner = making.folder(), None
        if isinstance(error, PermissionError) and path.parent == folder:
            with suppress(OSError):
                owner = folder.stat().st_uid
        if owner is not None and owner != os.geteuid():
            return (
                f"{folder} belongs to the account {account(owner)}. Make the account that runs Parley its owner: "
                f"chown -R ACCOUNT {folder}"
            )
        return explained(error, path)
