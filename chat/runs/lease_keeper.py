"""The heartbeat of a worker: it renews the lease, and compares the rows of sessions with the worker's claims."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from django.conf import settings

from chat import ids, metrics
from chat.models import RunState
from chat.runs import lease
from chat.runs.lease import Claim, RunRow
from chat.runs.liveness import ProcessLock, Watch

logger = logging.getLogger(__name__)

BEATS_PER_LEASE = 5
# If more than this share of a lease, and more than this many seconds, passed between two checks of the other workers,
# the database was probably unavailable for them, too.
MAX_GAP = 0.6
MIN_GAP = 2.0


@dataclass(slots=True)
class HeartbeatResult:
    """The result of a heartbeat. `began` is the start of the lease on the monotonic clock.

    `lost`: claims that the worker no longer has. `stops`: turns to stop, by session. `adopted`: new claims of sessions
    that the worker owned but did not run. `freed`: whether sessions of dead workers have become due. `leaving`:
    sessions to hand over. `drained`: whether the worker should claim no sessions and hand over all of its own.
    """

    worker_id: str
    began: float
    lost: list[Claim] = field(default_factory=list)
    stops: dict[str, str] = field(default_factory=dict)
    adopted: list[Claim] = field(default_factory=list)
    freed: bool = False
    leaving: list[str] = field(default_factory=list)
    drained: bool = False


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """A worker's claims compared with the rows.

    `suspects` are claims that differ from their row, but may be about to be released or run. If the next comparison
    finds the same difference, they count as lost or unserved.
    """

    lost: list[Claim]
    stops: dict[str, str]
    unserved: list[Claim]
    suspects: frozenset[Claim]


def reconcile(
    worker_id: str, running: Mapping[str, Claim], found: Mapping[str, RunRow], suspects: frozenset[Claim]
) -> Reconciliation:
    """Compare the claims that a worker runs, by session, with the rows."""
    stops: dict[str, str] = {}
    lost: list[Claim] = []
    unserved: list[Claim] = []
    suspected: list[Claim] = []
    for session_id, claim in running.items():
        row = found.get(session_id)
        is_of_another = row is None or row.epoch != claim.epoch or row.owner not in (claim.worker_id, None)
        if row is None or is_of_another or claim.worker_id != worker_id:
            lost.append(claim)
        elif row.owner is None and row.state != RunState.IDLE:
            (lost if claim in suspects else suspected).append(claim)
        elif row.state == RunState.CANCELLING:
            stops[session_id] = row.turn_id
    for session_id, row in found.items():
        if row.owner == worker_id and session_id not in running:
            claim = Claim(session_id, row.epoch, worker_id)
            (unserved if claim in suspects else suspected).append(claim)
    return Reconciliation(lost, stops, unserved, frozenset(suspected))


class LeaseKeeper:
    """The keeper of one worker's lease. A beat can raise database errors. The next beat then corrects the state."""

    def __init__(self, lock: ProcessLock, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.worker_id = ids.worker_id()
        self._lock = lock
        self._clock = clock
        self._watch = Watch(gap=max(MIN_GAP, settings.LEASE_SECONDS * MAX_GAP), grace=lock.grace)
        self._suspects: frozenset[Claim] = frozenset()
        self._is_registered = self._is_drained = self._has_freed = False
        self.has_others = False

    @property
    def interval(self) -> float:
        """The seconds between two beats."""
        usual: float = settings.LEASE_SECONDS / BEATS_PER_LEASE
        return usual

    def beat(self, running: Mapping[str, Claim]) -> HeartbeatResult:
        """Renew the lease, then find lost, stopped and unserved claims, and free the sessions of dead workers.

        `running` are the claims that the worker runs or has not given back yet, by session.
        """
        began = self._clock()
        self._lock.hold(self.worker_id)
        if self._is_registered and not lease.renew(self.worker_id):
            logger.warning("Other workers took the sessions of this one, because it did not renew its lease in time")
            self.worker_id, self._is_registered = ids.worker_id(), False
            self._lock.hold(self.worker_id)
        if not self._is_registered:
            lease.register_worker(self.worker_id)
            self._is_registered = True
            if self._is_drained:  # it was drained under its previous id
                lease.set_draining(self.worker_id, True)
        self._is_drained = lease.is_drained(self.worker_id)
        found = lease.run_rows(self.worker_id, running)
        result = reconcile(self.worker_id, running, found, self._suspects)
        self._suspects = result.suspects
        adopted = [claim for unserved in result.unserved if (claim := lease.adopt(unserved)) is not None]
        freed = self._free_sessions_of_dead_workers() or self._has_freed
        self._has_freed = False
        leaving = [session_id for session_id, row in found.items() if row.is_leaving and row.owner == self.worker_id]
        return HeartbeatResult(
            self.worker_id,
            began,
            lost=result.lost,
            stops=result.stops,
            adopted=adopted,
            freed=freed,
            leaving=leaving,
            drained=self._is_drained,
        )

    def free_dead_workers(self) -> bool:
        """Free the sessions of dead workers between two beats. Return whether any were freed since the last beat."""
        self._has_freed |= self._free_sessions_of_dead_workers()
        return self._has_freed

    def _free_sessions_of_dead_workers(self) -> bool:
        began = self._clock()
        renewals = lease.other_workers(self.worker_id)
        self.has_others = bool(renewals)
        free = self._lock.free(renewals) if renewals else set()
        freed = False
        for worker_id, renewal in self._watch.find_dead(renewals, free, began=began, ended=self._clock()).items():
            if lease.take_over(worker_id, renewal):
                logger.warning("Worker %s died; other workers continue its sessions", worker_id)
                freed = True
                metrics.takeovers.inc()
            self._lock.forget(worker_id)
        return freed

    @property
    def grace(self) -> float:
        """The seconds for which the worker's lock may be free before other workers take its sessions."""
        return self._lock.grace

    def disconnected(self) -> None:
        """Restart the check of other workers, because the database may have been unavailable for them, too."""
        self._watch.forget()

    def end(self) -> None:
        """Release the worker's sessions and its lock."""
        lease.release_worker(self.worker_id)
        self._lock.release()
