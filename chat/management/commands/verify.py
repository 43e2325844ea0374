"""`manage.py verify`: check all rows of the database and their files."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from chat.errors import FilesUnavailable
from chat.management.data_command import DataCommand
from chat.queries.verifying import Verification


class Command(DataCommand):
    help = (
        "Check the integrity of all sessions, and that each attachment, knowledge file and picture has its file. "
        "Changes nothing. Servers can keep running."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        verification, problems = Verification(), 0
        try:
            for line in verification.problems():
                problems += 1
                self.stdout.write(line)
                self.stdout.flush()
        except FilesUnavailable as error:
            raise CommandError(f"{problems} problems found, but the files could not be checked: {error}") from error
        checked = ", ".join(f"{verification.counts[kind]} {kind}" for kind in ("sessions", "messages", "files"))
        if problems:
            raise CommandError(f"{problems} problems found. Checked {checked}.")
        self.stdout.write(f"No problems found. Checked {checked}.")
