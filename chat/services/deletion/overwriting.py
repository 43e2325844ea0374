"""What SQLite itself still keeps of deleted rows: terms in the text index, pages in the write-ahead log.

Deleted rows are overwritten at once (`secure_delete`, config/settings.py). The text index only marks them, until its
parts are merged; and the log keeps old pages until it is emptied. PostgreSQL does both by itself, in time (VACUUM).
"""

from __future__ import annotations

from typing import Any, cast

from django.db import connection, transaction
from django.utils import timezone

from chat.models import JobLease
from chat.services.batches import Deadline, Pacer

# How much of the index one transaction rewrites: about 2 MB, in a tenth of a second.
PAGES = 500
# How many milliseconds emptying the log waits for readers.
LOG_PATIENCE = 200
JOB = "overwrite"


def request() -> None:
    """Note that something was deleted which must not stay in the files: the maintenance job overwrites it soon."""
    JobLease.objects.update_or_create(name=JOB, defaults={"expires_at": timezone.now(), "finished_at": None})


def is_requested() -> bool:
    return JobLease.objects.filter(name=JOB, finished_at=None).exists()


def overwrite_deleted(deadline: Deadline | None = None) -> bool:
    """Drop from SQLite's files what is left of deleted rows; not within a transaction.

    Returns False when the deadline came first, or somebody reads from the log: it stays requested.
    """
    if connection.vendor != "sqlite":
        JobLease.objects.filter(name=JOB).update(finished_at=timezone.now())
        return True
    deadline, pacer = deadline or Deadline(), Pacer()
    pages = -PAGES  # a negative number begins the merge of everything, a positive one continues it
    while _merge_index(pages):
        if deadline.is_over:
            return False
        pages = PAGES
        pacer.pause()
    if not _empty_log():
        return False
    JobLease.objects.filter(name=JOB).update(finished_at=timezone.now())
    return True


def vacuum() -> None:
    """Rewrite the database without its free space and what may be left there. Writers wait until it is done."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")
    if connection.vendor == "sqlite":
        _empty_log()


@transaction.atomic
def _merge_index(pages: int) -> bool:
    """Merge some of the text index; returns False when there is nothing left to merge."""
    before = _changes()
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO chat_search(chat_search, rank) VALUES ('merge', %s)", [pages])
    return _changes() - before >= 2  # https://www.sqlite.org/fts5.html#the_merge_command


def _empty_log() -> bool:
    """Write the log into the database and empty it; False when a reader needs it. Writers wait, so not for long."""
    with connection.cursor() as cursor:
        before = cursor.execute("PRAGMA busy_timeout").fetchone()[0]
        cursor.execute(f"PRAGMA busy_timeout={LOG_PATIENCE}")
        try:
            is_busy = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            cursor.execute(f"PRAGMA busy_timeout={before}")
    return not is_busy


def _changes() -> int:
    return int(cast("Any", connection.connection).total_changes)
