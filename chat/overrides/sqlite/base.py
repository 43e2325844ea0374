"""Django's SQLite backend for a process in which many threads write.

SQLite lets writers poll for its lock, so at a hundred transactions a second some of them wait for seconds. With
SERIALIZE_WRITES, the threads of one process queue for a separate lock instead, and are woken in turn.

SQLite also holds its lock while the disk stores each commit. With GROUP_SYNC, a commit releases the lock once it is in
the write-ahead log, and then waits until the log is on the disk. One sync serves all commits that were made before it.

Django also converts the placeholders of a statement each time that it is executed. With CONVERT_ONCE, the latest
statements are kept in their converted form.

Overridden private methods: `_start_transaction_under_autocommit`, `_commit`, `_rollback` and `_close` of
`django.db.backends.sqlite3.base.DatabaseWrapper`. Also overridden: its `create_cursor`, and `convert_query` of
`SQLiteCursorWrapper`. docs/performance.md lists the gain of each switch.

A commit that has been made is never reported as a failure. Steps that can fail are done before it, and if a sync fails,
the process ends. A later sync would not help, because the kernel may have dropped the pages and report success.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Sequence
from functools import cache, lru_cache
from threading import Lock
from typing import Any, NoReturn

from django.db.backends.sqlite3 import base
from django.db.utils import OperationalError

logger = logging.getLogger(__name__)

# Off: writers poll for SQLite's own lock.
SERIALIZE_WRITES = True
# Off: each commit syncs the log itself while it holds the lock (PRAGMA synchronous=FULL).
GROUP_SYNC = True
# Off: Django converts the placeholders of each statement again.
CONVERT_ONCE = True
# Seconds, as in OPTIONS["timeout"], for writers of other processes. After it, SQLite reports "database is locked".
LOCK_TIMEOUT_SECONDS = 5.0
# The most converted statements in memory. A statement has one to six KB.
KEPT_STATEMENTS = 256
# Syncs the data, and the metadata that is needed to read it. Not every system has `fdatasync`.
_sync_file = getattr(os, "fdatasync", os.fsync)


class WriteAheadLog:
    """The log of one database, and the lock of the threads of this process that write to it."""

    def __init__(self, path: str) -> None:
        self.write_lock = Lock()
        self._path = path
        self._file = -1
        self._sync_lock = Lock()
        self._count_lock = Lock()
        self._committed = 0
        self._synced = 0

    def open(self) -> None:
        """Open the log for a later `sync`. The caller holds the write lock. Raise OperationalError.

        SQLite creates a new log after all connections have been closed.
        """
        try:
            if self._file >= 0 and os.path.samestat(os.fstat(self._file), os.stat(self._path)):
                return
            file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:  # nothing is written yet, so this can be reported
            raise OperationalError(f"the database's log cannot be opened: {error}") from error
        with self._sync_lock:
            self._file, old = file, self._file
        if old >= 0:
            os.close(old)

    def count_commit(self) -> int:
        """Return the number of the commit that was just made.

        A writer that has waited LOCK_TIMEOUT_SECONDS continues without the write lock, so the count has a separate
        lock.
        """
        with self._count_lock:
            self._committed += 1
            return self._committed

    def sync(self, commit: int) -> None:
        """Wait until this commit survives a power cut. If the disk fails, end the process."""
        with self._sync_lock:
            if self._synced < commit:
                last = self._committed
                try:
                    _sync_file(self._file)
                except OSError as error:
                    _end_process(error)
                self._synced = last


def _end_process(error: OSError) -> NoReturn:
    """Exit immediately, without the writes of a shutdown.

    The next start reads the part of the log that is on the disk.
    """
    logger.critical("Cannot write to the disk: %s. Parley stops now. Repair the disk, then start Parley again", error)
    logging.shutdown()
    os._exit(os.EX_IOERR)


@cache
def log_of(database: str) -> WriteAheadLog:
    """Return the log that all connections of this process to a database share."""
    return WriteAheadLog(f"{database}-wal")


class CursorWrapper(base.SQLiteCursorWrapper):
    """A cursor that converts the placeholders of a repeated statement only once."""

    def convert_query(self, query: str, *, param_names: Sequence[str] | None = None) -> str:
        if not CONVERT_ONCE:
            return str(super().convert_query(query, param_names=param_names))
        return _converted(query, None if param_names is None else tuple(param_names))


@lru_cache(KEPT_STATEMENTS)
def _converted(query: str, names: tuple[str, ...] | None) -> str:
    return str(base.SQLiteCursorWrapper.convert_query(None, query, param_names=names))  # type: ignore[arg-type]


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection in WAL mode.

    Without `waits_for_disk`, a power cut may undo its latest commits, until a commit of another connection is synced. A
    crash of the process does not undo them.
    """

    connection: Any
    waits_for_disk = True
    # False if SQLite keeps no log (in memory, on some network file systems). Then this class changes nothing.
    _has_log = False
    _log: WriteAheadLog
    _holds_lock = False
    _changes_before = 0

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        self._has_log = connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        self._log = log_of(str(self.settings_dict["NAME"]))
        return connection

    def create_cursor(self, name: str | None = None) -> Any:
        return self.connection.cursor(factory=CursorWrapper)

    def _start_transaction_under_autocommit(self) -> None:
        if not self._has_log:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # missing in the stubs
            return
        if SERIALIZE_WRITES:
            self._holds_lock = self._log.write_lock.acquire(timeout=LOCK_TIMEOUT_SECONDS)
        try:
            self._set_synchronous(self.waits_for_disk and not GROUP_SYNC)
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # see above
            if self.waits_for_disk and GROUP_SYNC:
                self._log.open()
        except BaseException:
            if self.connection.in_transaction:
                self.connection.rollback()
            self._release_lock()
            raise
        self._changes_before = self.connection.total_changes

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]  # see above
        if not self._has_log or self.connection is None:
            return
        wrote = self.connection.total_changes != self._changes_before
        commit = self._log.count_commit() if wrote and self.waits_for_disk and GROUP_SYNC else 0
        try:
            self._release_lock()
        except sqlite3.Error:  # the commit has been made nevertheless
            logger.exception("Could not reset a database connection after a commit")
        if commit:
            self._log.sync(commit)

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]  # see above
        finally:
            self._release_lock()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]  # see above
        finally:
            self.connection = None
            self._release_lock()

    def _release_lock(self) -> None:
        try:
            if self.connection is not None and self._has_log:
                self._set_synchronous(self.waits_for_disk)  # for statements outside transactions
        finally:
            if self._holds_lock:
                self._holds_lock = False
                self._log.write_lock.release()

    def _set_synchronous(self, full: bool) -> None:
        self.connection.execute(f"PRAGMA synchronous={'FULL' if full else 'NORMAL'}")
