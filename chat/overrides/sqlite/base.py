"""Connections whose transactions take turns to write, and wait for the disk together.

SQLite lets writers poll for its lock, which at a hundred transactions a second keeps some of them out for seconds, and
holds the lock while the disk takes in each commit. Here a thread is woken when it is its turn, gives the turn away
when its commit is in the log, and then waits until the log is on the disk, which serves all that committed meanwhile.

A commit that is made is never reported as a failure: what can fail comes before it, and a disk that fails after it
ends the process. No later sync would help: the system may have dropped what it could not write, and report success.
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

# As long as other processes are waited for (OPTIONS timeout); then SQLite itself says that the database is locked.
PATIENCE = 5.0
# Takes the data and what is needed to find it again to the disk; not every system has it.
_to_disk = getattr(os, "fdatasync", os.fsync)


class Writers:
    """The threads of this process that write to one database."""

    def __init__(self, log: str) -> None:
        self.turn = Lock()
        self._log = log
        self._file = -1
        self._syncing = Lock()
        self._committed = 0
        self._on_disk = 0

    def open_log(self) -> None:
        """Have the log open for a commit that will wait for the disk; to be called while it is one's turn.

        SQLite makes a new one when all connections had been closed. Raises OSError.
        """
        if self._file >= 0 and os.path.samestat(os.fstat(self._file), os.stat(self._log)):
            return
        file = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC)
        with self._syncing:
            self._file, old = file, self._file
        if old >= 0:
            os.close(old)

    def committed(self) -> int:
        """Count a commit; to be called while it is one's turn."""
        self._committed += 1
        return self._committed

    def wait_for_disk(self, commit: int) -> None:
        """Wait until a commit survives a power cut. If the disk refuses, the process ends."""
        with self._syncing:
            if self._on_disk < commit:
                last = self._committed
                try:
                    _to_disk(self._file)
                except OSError as error:
                    _end_process(error)
                self._on_disk = last


def _end_process(error: OSError) -> NoReturn:
    """End at once, without an orderly end's writes. The next start reads from the log what the disk really has."""
    logger.critical("The disk does not keep what is written: %s. Parley ends here. Mend the disk, then start it", error)
    logging.shutdown()
    os._exit(os.EX_IOERR)


@cache
def writers_of(database: str) -> Writers:
    """Return what all connections of this process to a database share."""
    return Writers(f"{database}-wal")


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection in WAL mode. `waits_for_disk` off: what it commits may be undone by a power cut, though by nothing
    else, until another connection's commit is on the disk."""

    connection: Any
    waits_for_disk = True
    # Off where SQLite keeps no log (in memory, on some network folders): then it does everything by itself.
    _has_log = False
    _has_turn = False
    _changes_before = 0

    @property
    def _writers(self) -> Writers:
        return writers_of(str(self.settings_dict["NAME"]))

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        self._has_log = connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        return connection

    def _start_transaction_under_autocommit(self) -> None:
        if not self._has_log:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # the stubs do not know it
            return
        self._has_turn = self._writers.turn.acquire(timeout=PATIENCE)
        try:
            self.connection.execute("PRAGMA synchronous=NORMAL")
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # see above
            if self.waits_for_disk:
                self._open_log()
        except BaseException:
            if self.connection.in_transaction:
                self.connection.rollback()
            self._end_turn()
            raise
        self._changes_before = self.connection.total_changes

    def _open_log(self) -> None:
        try:
            self._writers.open_log()
        except OSError as error:  # nothing is written yet: this can be reported
            raise OperationalError(f"the database's log cannot be opened: {error}") from error

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]  # nor this
        if not self._has_log or self.connection is None:
            return
        wrote = self.connection.total_changes != self._changes_before
        commit = self._writers.committed() if wrote and self.waits_for_disk else 0
        try:
            self._end_turn()
        except sqlite3.Error:  # the commit is made all the same
            logger.exception("A connection could not be reset after a commit")
        if commit:
            self._writers.wait_for_disk(commit)

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]  # nor this
        finally:
            self._end_turn()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]  # nor this
        finally:
            self.connection = None
            self._end_turn()

    def _end_turn(self) -> None:
        try:
            if self.connection is not None and self._has_log:
                self.connection.execute(f"PRAGMA synchronous={'FULL' if self.waits_for_disk else 'NORMAL'}")
        finally:
            if self._has_turn:
                self._has_turn = False
                self._writers.turn.release()
