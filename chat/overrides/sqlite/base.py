"""Django's SQLite backend for a process in which many threads write.

SQLite lets writers poll for its lock: at a hundred transactions a second some of them wait for seconds. Here the
threads of one process queue for a lock of their own (SERIALIZE_WRITES), and are woken in turn.

SQLite also holds its lock while the disk stores each commit. With GROUP_SYNC a commit releases the lock once it is in
the write-ahead log, and then waits until the log is on the disk; one sync serves all commits made before it.

Overridden private methods: `_start_transaction_under_autocommit`, `_commit`, `_rollback` and `_close` of
`django.db.backends.sqlite3.base.DatabaseWrapper`. docs/performance.md has what each switch gains.

A commit that has been made is never reported as a failure: what can fail is done before it, and a failing sync ends the
process. A later sync cannot help: the kernel may have dropped the pages and report success.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from functools import cache
from threading import Lock
from typing import Any, NoReturn

from django.db.backends.sqlite3 import base
from django.db.utils import OperationalError

logger = logging.getLogger(__name__)

# Off: writers poll for SQLite's own lock.
SERIALIZE_WRITES = True
# Off: each commit syncs the log itself while it holds the lock (PRAGMA synchronous=FULL).
GROUP_SYNC = True
# The same as OPTIONS["timeout"], for which writers of other processes wait; then SQLite reports "database is locked".
LOCK_TIMEOUT_SECONDS = 5.0
# Syncs the data and the metadata that is needed to read it; not every system has it.
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
        """Open the log for a later `sync`; the caller holds the write lock. Raises OSError.

        SQLite creates a new log after all connections had been closed.
        """
        if self._file >= 0 and os.path.samestat(os.fstat(self._file), os.stat(self._path)):
            return
        file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        with self._sync_lock:
            self._file, old = file, self._file
        if old >= 0:
            os.close(old)

    def count_commit(self) -> int:
        """Return the number of the commit that was just made.

        A writer that has waited LOCK_TIMEOUT_SECONDS goes on without the write lock, so the count has its own.
        """
        with self._count_lock:
            self._committed += 1
            return self._committed

    def sync(self, commit: int) -> None:
        """Return when this commit survives a power cut. If the disk fails, the process ends."""
        with self._sync_lock:
            if self._synced < commit:
                last = self._committed
                try:
                    _sync_file(self._file)
                except OSError as error:
                    _end_process(error)
                self._synced = last


def _end_process(error: OSError) -> NoReturn:
    """Exit at once, without the writes of a shutdown. The next start reads from the log what the disk has stored."""
    logger.critical("The disk does not keep what is written: %s. Parley ends here. Mend the disk, then start it", error)
    logging.shutdown()
    os._exit(os.EX_IOERR)


@cache
def log_of(database: str) -> WriteAheadLog:
    """Return the log that all connections of this process to a database share."""
    return WriteAheadLog(f"{database}-wal")


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection in WAL mode.

    Without `waits_for_disk` a power cut may undo its latest commits, until another connection's commit is synced; a
    crash of the process does not.
    """

    connection: Any
    waits_for_disk = True
    # Off where SQLite keeps no log (in memory, on some network file systems): then this class changes nothing.
    _has_log = False
    _holds_lock = False
    _changes_before = 0

    @property
    def _log(self) -> WriteAheadLog:
        return log_of(str(self.settings_dict["NAME"]))

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        self._has_log = connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        return connection

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
                self._open_log()
        except BaseException:
            if self.connection.in_transaction:
                self.connection.rollback()
            self._release_lock()
            raise
        self._changes_before = self.connection.total_changes

    def _open_log(self) -> None:
        try:
            self._log.open()
        except OSError as error:  # nothing is written yet, so this can be reported
            raise OperationalError(f"the database's log cannot be opened: {error}") from error

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]  # see above
        if not self._has_log or self.connection is None:
            return
        wrote = self.connection.total_changes != self._changes_before
        commit = self._log.count_commit() if wrote and self.waits_for_disk and GROUP_SYNC else 0
        try:
            self._release_lock()
        except sqlite3.Error:  # the commit is made all the same
            logger.exception("A connection could not be reset after a commit")
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
                self._set_synchronous(self.waits_for_disk)  # for statements outside of transactions
        finally:
            if self._holds_lock:
                self._holds_lock = False
                self._log.write_lock.release()

    def _set_synchronous(self, full: bool) -> None:
        self.connection.execute(f"PRAGMA synchronous={'FULL' if full else 'NORMAL'}")
