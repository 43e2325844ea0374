"""Detect that a worker's process has ended, by a lock that its operating system or database releases.

SQLite, where all processes are on one machine: an flock'ed file beside the database. The kernel releases it with the
process, so a free lock is proof. Process ids are no proof: they are reused, and containers do not share them.

PostgreSQL: a session-level advisory lock of the heartbeat's connection. The server releases it with the connection,
which a live process can lose, too, and opens again at once. So a lock has to be free for `GRACE` seconds, in which a
live worker has taken it again or has stopped publishing (`heartbeat.py`). After a restart of the server all locks are
free until the workers have reconnected, so for a while no worker counts as dead.

A lock that cannot be taken, or is held for too long, proves nothing. Then the lease decides.
"""

from __future__ import annotations

import fcntl
import logging
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from django.db import connection

from chat.runs.lease import Renewal

logger = logging.getLogger(__name__)

GRACE = 1.0
# The first half of the advisory locks' keys. The second half is made from the worker's id.
LOCK_CLASS = 7_275_394


class ProcessLock(Protocol):
    """The lock of one worker, and a check of other workers' locks. `grace`: seconds for which a lock has to be free."""

    grace: float

    def hold(self, worker_id: str) -> None:
        """Take the worker's lock, if it is not held yet. Call it before the worker is registered."""

    def free(self, worker_ids: Iterable[str]) -> set[str]:
        """Return the workers whose locks are known to be free."""

    def forget(self, worker_id: str) -> None:
        """Remove what is left of a dead worker's lock."""

    def release(self) -> None:
        """Release the lock of a worker that has stopped."""


class FileLock:
    """A locked file in the folder `<database>.workers`."""

    grace = 0.0

    def __init__(self, database: Path) -> None:
        self._folder = database.with_name(f"{database.name}.workers")
        self._file: int | None = None
        self._held = self._tried = ""

    def hold(self, worker_id: str) -> None:
        if self._tried == worker_id:
            return
        self.release()
        self._tried = worker_id
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._file = os.open(self._folder / worker_id, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._held = worker_id
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            logger.warning("Other processes will not notice immediately when this one ends: %s", error)
            self.release()  # an unlocked file would mean that this process has ended

    def free(self, worker_ids: Iterable[str]) -> set[str]:
        return {worker_id for worker_id in worker_ids if self._is_free(self._folder / worker_id)}

    def _is_free(self, path: Path) -> bool:
        """Return whether a lock is free. A missing file is no proof: the worker may not have been able to create it."""
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(file)
        return True

    def forget(self, worker_id: str) -> None:
        (self._folder / worker_id).unlink(missing_ok=True)

    def release(self) -> None:
        if self._file is not None:
            self.forget(self._held)
            os.close(self._file)
        self._file, self._held = None, ""


class AdvisoryLock:
    """A lock of the calling thread's connection, which must stay open."""

    grace = GRACE

    def __init__(self, lease_seconds: float) -> None:
        self._lease_seconds = lease_seconds

    def hold(self, worker_id: str) -> None:
        """Take the lock again after each reconnect. The old database session can still hold it for a while."""
        key = _key(worker_id)
        mine = "SELECT 1 FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND objid = %s"
        _ask(f"SELECT pg_try_advisory_lock(%s, %s) WHERE NOT EXISTS ({mine})", [LOCK_CLASS, _signed(key), key])

    def free(self, worker_ids: Iterable[str]) -> set[str]:
        held = _ask(
            "SELECT objid::bigint FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
            " WHERE locktype = 'advisory' AND classid = %s AND granted AND datname = current_database()"
            # So soon after a restart of the server, workers have not reconnected yet.
            " UNION ALL SELECT -1 WHERE pg_postmaster_start_time() > now() - make_interval(secs => %s)",
            [LOCK_CLASS, self._lease_seconds],
        )
        if -1 in held:
            return set()
        return {worker_id for worker_id in worker_ids if _key(worker_id) not in held}

    def forget(self, worker_id: str) -> None:
        """Do nothing: an advisory lock leaves nothing behind."""

    def release(self) -> None:
        """The lock ends with the connection."""


def process_lock(lease_seconds: float) -> ProcessLock:
    """Return the kind of lock for the calling thread's database."""
    if connection.vendor == "sqlite":
        return FileLock(Path(connection.settings_dict["NAME"]))
    return AdvisoryLock(lease_seconds)


class Watch:
    """Decides which other workers are dead, by this process's clock alone.

    A worker is dead when its row has not changed for the length of its lease, or when its lock has been free for the
    lock's grace period without a change of the row. If more than `gap` seconds pass between two looks, the database was
    unavailable for the others, too, and all periods start again.
    """

    def __init__(self, *, gap: float, grace: float) -> None:
        self._gap = gap
        self._grace = grace
        self._renewals: dict[str, Renewal] = {}
        self._since: dict[str, float] = {}
        self._free_since: dict[str, float] = {}
        self._last_look = float("-inf")

    def forget(self) -> None:
        """Start all periods again."""
        self._renewals.clear()
        self._since.clear()
        self._free_since.clear()

    def look(
        self, renewals: Mapping[str, Renewal], free: Iterable[str], *, began: float, ended: float
    ) -> dict[str, Renewal]:
        """Take in what was read between `began` and `ended`; return the dead workers with their last renewals."""
        if ended - self._last_look > self._gap:
            self.forget()
        self._last_look = ended
        for worker_id in [known for known in self._renewals if renewals.get(known) != self._renewals[known]]:
            del self._renewals[worker_id], self._since[worker_id]
            self._free_since.pop(worker_id, None)
        free = set(free)
        dead = {}
        for worker_id, renewal in renewals.items():
            # From the end of the first read to the begin of this one: never longer than it really was.
            self._renewals[worker_id] = renewal
            unchanged = began - self._since.setdefault(worker_id, ended)
            free_for = self._free_for(worker_id, worker_id in free, began, ended)
            if unchanged >= renewal.seconds or free_for >= self._grace:
                dead[worker_id] = renewal
        return dead

    def _free_for(self, worker_id: str, is_free: bool, began: float, ended: float) -> float:
        if not is_free:
            self._free_since.pop(worker_id, None)
            return -1.0
        if self._grace == 0:
            return 0.0
        return began - self._free_since.setdefault(worker_id, ended)


def _key(worker_id: str) -> int:
    """Return 32 bits of an id. Two workers with the same bits would only wait for each other's lease."""
    return zlib.crc32(worker_id.encode())


def _signed(number: int) -> int:
    """Convert to a signed integer, which PostgreSQL expects; it returns the same bits unsigned."""
    return number - 2**32 if number >= 2**31 else number


def _ask(sql: str, values: Sequence[float]) -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return {int(row[0]) for row in cursor.fetchall()}
