"""`manage.py purge`: permanently delete what users deleted more than PURGE_AFTER_DAYS ago."""

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
        "Permanently delete what users deleted more than PURGE_AFTER_DAYS ago, uploads that were never sent, and "
        "files left behind by crashes. A running server does this once a day."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--days",
            type=number_of_days,
            help="the number of days; 0: everything that was deleted; default: PURGE_AFTER_DAYS",
        )
        parser.add_argument(
            "--vacuum",
            action="store_true",
            help="also rewrite the database to reclaim free space; this takes a while and blocks all writes",
        )

    def handle(self, *args: Any, days: int | None = None, vacuum: bool = False, **options: Any) -> str:
        before = purging.cutoff() if days is None else timezone.now() - timedelta(days=days)
        counts = jobs.purge(before=before)
        overwriting.overwrite_deleted()
        if vacuum:
            overwriting.vacuum()
        return f"Purged: {describe(counts)}."


def describe(counts: dict[str, int]) -> str:
    """Return counts by kind as a part of a sentence."""
    named = (f"{count} {kind.replace('_', ' ')}" for kind, count in sorted(counts.items()) if count)
    return ", ".join(named) or "nothing"
