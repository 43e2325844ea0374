"""The detection of ended worker processes, by a lock that the operating system or the database releases.

With SQLite, all processes are on one machine, and the lock is an flock'ed file beside the database. The kernel releases
it when the process ends, so a free lock is proof. A process id would not be proof, because ids are reused and
containers do not share them.

With PostgreSQL, the lock is a session-level advisory lock of the heartbeat's connection. The server releases it with
the connection. A live process can lose its connection, too, but opens a new one immediately. So a lock must be free for
`GRACE` seconds. In this time, a live worker has taken it again or has stopped publishing (`heartbeat.py`). After a
restart of the server, all locks are free until the workers have reconnected, so no worker counts as dead for a while.

If a lock cannot be taken, or is held for too long, only the lease decides.
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
    """The lock of one worker, and the check of other workers' locks.

    A worker is dead if its lock is free for `grace` seconds.
    """

    grace: float

    def hold(self, worker_id: str) -> None:
        """Take the worker's lock, unless it is already held. Call this before the worker is registered."""

    def free(self, worker_ids: Iterable[str]) -> set[str]:
        """Return the workers whose locks are known to be free."""

    def forget(self, worker_id: str) -> None:
        """Remove the remains of a dead worker's lock."""

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
            logger.warning("Other processes cannot detect immediately when this one ends: %s", error)
            self.release()  # an unlocked file would mean that this process has ended

    def free(self, worker_ids: Iterable[str]) -> set[str]:
        return {worker_id for worker_id in worker_ids if self._is_free(self._folder / worker_id)}

    def _is_free(self, path: Path) -> bool:
        """Return whether a lock is free. A missing file is not, because the worker may have failed to create it."""
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
        """Take the lock, also again after a reconnect. The old database session may still hold it for a while."""
        key = _key(worker_id)
        mine = "SELECT 1 FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND objid = %s"
        _ask(f"SELECT pg_try_advisory_lock(%s, %s) WHERE NOT EXISTS ({mine})", [LOCK_CLASS, _signed(key), key])

    def free(self, worker_ids: Iterable[str]) -> set[str]:
        held = _ask(
            "SELECT objid::bigint FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
            " WHERE locktype = 'advisory' AND classid = %s AND granted AND datname = current_database()"
            # Shortly after a restart of the server, workers may not have reconnected yet.
            " UNION ALL SELECT -1 WHERE pg_postmaster_start_time() > now() - make_interval(secs => %s)",
            [LOCK_CLASS, self._lease_seconds],
        )
        if -1 in held:
            return set()
        return {worker_id for worker_id in worker_ids if _key(worker_id) not in held}

    def forget(self, worker_id: str) -> None:
        """Do nothing, because an advisory lock has no remains."""

    def release(self) -> None:
        """Do nothing, because the lock ends with the connection."""


def process_lock(lease_seconds: float) -> ProcessLock:
    """Return the kind of lock for the calling thread's database."""
    if connection.vendor == "sqlite":
        return FileLock(Path(connection.settings_dict["NAME"]))
    return AdvisoryLock(lease_seconds)


class Watch:
    """The decision of which other workers are dead. It uses only the clock of this process.

    A worker is dead if its row has not changed for the length of its lease, or if its lock has been free for the lock's
    grace period without a change of the row. If more than `gap` seconds pass between two checks, the database was
    probably unavailable for the others, too, so all periods start again.
    """

    def __init__(self, *, gap: float, grace: float) -> None:
        self._gap = gap
        self._grace = grace
        self._renewals: dict[str, Renewal] = {}
        self._since: dict[str, float] = {}
        self._free_since: dict[str, float] = {}
        self._last_check = float("-inf")

    def forget(self) -> None:
        """Start all periods again."""
        self._renewals.clear()
        self._since.clear()
        self._free_since.clear()

    def find_dead(
        self, renewals: Mapping[str, Renewal], free: Iterable[str], *, began: float, ended: float
    ) -> dict[str, Renewal]:
        """Return the dead workers with their last renewals.

        `renewals` and `free` were read from the database between the monotonic times `began` and `ended`.
        """
        if ended - self._last_check > self._gap:
            self.forget()
        self._last_check = ended
        for worker_id in [known for known in self._renewals if renewals.get(known) != self._renewals[known]]:
            del self._renewals[worker_id], self._since[worker_id]
            self._free_since.pop(worker_id, None)
        free = set(free)
        dead = {}
        for worker_id, renewal in renewals.items():
            # Measured from the end of the first read to the start of this one, so that it is never too long.
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
    """Return a 32-bit hash of an id. If two workers have the same hash, the lease decides whether they are dead."""
    return zlib.crc32(worker_id.encode())


def _signed(number: int) -> int:
    """Return the signed integer with the same 32 bits, which PostgreSQL expects. In results, it is unsigned."""
    return number - 2**32 if number >= 2**31 else number


def _ask(sql: str, values: Sequence[float]) -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return {int(row[0]) for row in cursor.fetchall()}
