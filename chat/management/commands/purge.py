"""`manage.py purge`: delete for good, now, what users deleted long ago."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.utils import timezone

from chat.management.data_command import DataCommand, number_of_days
from chat.services.deletion import overwriting, purging
from chat.services.maintenance import jobs


class Command(DataCommand):
    help = (
        "Delete for good what users deleted more than PURGE_AFTER_DAYS ago, uploads that were never sent, and what "
        "crashes left. A running server does this once a day by itself."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--days", type=number_of_days, help="another number of days; 0: all that was deleted")
        parser.add_argument(
            "--vacuum",
            action="store_true",
            help="also rewrite the database without its free space, which takes a while and lets no one write",
        )

    def handle(self, *args: Any, days: int | None = None, vacuum: bool = False, **options: Any) -> str:
        before = purging.cutoff() if days is None else timezone.now() - timedelta(days=days)
        counts = jobs.purge(before=before)
        overwriting.overwrite_deleted()
        if vacuum:
            overwriting.vacuum()
        return f"Purged: {described(counts)}."


def described(counts: dict[str, int]) -> str:
    """Return counts by kind as a sentence's part."""
    named = (f"{count} {kind.replace('_', ' ')}" for kind, count in sorted(counts.items()) if count)
    return ", ".join(named) or "nothing"
