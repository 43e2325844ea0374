"""Overwrite deleted content that SQLite keeps: terms in the text index, and pages in the write-ahead log.

Deleted rows are overwritten immediately (`secure_delete`, config/settings.py). But the text index only marks them until
its parts are merged, and the log keeps old pages until it is emptied. PostgreSQL removes both by itself (VACUUM).
"""

from __future__ import annotations

from typing import Any, cast

from django.db import connection, transaction
from django.utils import timezone

from chat.models import JobLease
from chat.services.batches import NO_DEADLINE, Deadline, Pacer

# Index pages that one transaction rewrites: about 2 MB, in a tenth of a second.
PAGES = 500
# Milliseconds for which emptying the log waits for readers.
LOG_TIMEOUT = 200
JOB = "overwrite"


def request() -> None:
    """Request that the next maintenance job overwrites deleted content in the files."""
    JobLease.objects.update_or_create(name=JOB, defaults={"expires_at": timezone.now(), "finished_at": None})


def is_requested() -> bool:
    return JobLease.objects.filter(name=JOB, finished_at=None).exists()


def overwrite_deleted(deadline: Deadline = NO_DEADLINE) -> bool:
    """Remove deleted rows from SQLite's index and log. Must not be called in a transaction.

    Return False if the deadline came first or a reader needs the log; the request stays then.
    """
    if connection.vendor != "sqlite":
        JobLease.objects.filter(name=JOB).update(finished_at=timezone.now())
        return True
    pacer = Pacer()
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
    """Rewrite the database without its free space, which can have deleted content. Writers wait until it is done."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")
    if connection.vendor == "sqlite":
        _empty_log()


@transaction.atomic
def _merge_index(pages: int) -> bool:
    """Merge a part of the text index. Return False if nothing is left to merge."""
    before = _changes()
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO chat_search(chat_search, rank) VALUES ('merge', %s)", [pages])
    return _changes() - before >= 2  # https://www.sqlite.org/fts5.html#the_merge_command


def _empty_log() -> bool:
    """Write the log into the database and empty it.

    Return False if a reader needs it. Blocks writers for a short time.
    """
    with connection.cursor() as cursor:
        before = cursor.execute("PRAGMA busy_timeout").fetchone()[0]
        cursor.execute(f"PRAGMA busy_timeout={LOG_TIMEOUT}")
        try:
            is_busy = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            cursor.execute(f"PRAGMA busy_timeout={before}")
    return not is_busy


def _changes() -> int:
    return int(cast("Any", connection.connection).total_changes)
