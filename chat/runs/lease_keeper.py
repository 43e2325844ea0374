"""What one heartbeat does to the rows: renews the lease, and compares what the rows say with what the worker runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from django.conf import settings

from chat import ids
from chat.models import RunState
from chat.runs import lease
from chat.runs.lease import Claim, Standing
from chat.runs.liveness import ProcessLock, Watch

logger = logging.getLogger(__name__)

BEATS_PER_LEASE = 5
# When more than this share of a lease, or so many seconds, passed between two looks at the other workers, the database
# was away for them too.
LONGEST_GAP = 0.6
SHORTEST_GAP = 2.0


@dataclass(slots=True)
class Beat:
    """What a beat found. `began`: the moment from which the lease counts, by the monotonic clock.

    `lost`: claims that are not the worker's any more; `stops`: turns that are to stop, by session; `adopted`: new
    claims for sessions that the worker owned without running them; `freed`: sessions of dead workers are due now.
    """

    worker_id: str
    began: float
    lost: list[Claim] = field(default_factory=list)
    stops: dict[str, str] = field(default_factory=dict)
    adopted: list[Claim] = field(default_factory=list)
    freed: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the rows say of a worker's claims. `suspects` are claims that count as lost, or as unserved, if the next
    comparison says the same: they may be about to be released, or served, by what the worker is doing right now."""

    lost: list[Claim]
    stops: dict[str, str]
    unserved: list[Claim]
    suspects: frozenset[Claim]


def compare(
    worker_id: str, running: Mapping[str, Claim], found: Mapping[str, Standing], suspects: frozenset[Claim]
) -> Comparison:
    """Compare the claims that a worker serves, by session, with the rows."""
    stops: dict[str, str] = {}
    lost: list[Claim] = []
    unserved: list[Claim] = []
    suspected: set[Claim] = set()
    for session_id, claim in running.items():
        row = found.get(session_id)
        is_of_another = row is None or row.epoch != claim.epoch or row.owner not in (claim.worker_id, None)
        if row is None or is_of_another or claim.worker_id != worker_id:
            lost.append(claim)
        elif row.owner is None and row.state != RunState.IDLE:
            (lost.append if claim in suspects else suspected.add)(claim)
        elif row.state == RunState.CANCELLING:
            stops[session_id] = row.turn_id
    for session_id, row in found.items():
        if row.owner == worker_id and session_id not in running:
            claim = Claim(session_id, row.epoch, worker_id)
            (unserved.append if claim in suspects else suspected.add)(claim)
    return Comparison(lost, stops, unserved, frozenset(suspected))


class LeaseKeeper:
    """One worker's side of the leases. A beat may raise a database error at any statement; the next one mends it."""

    def __init__(self, lock: ProcessLock, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.worker_id = ids.worker_id()
        self._lock = lock
        self._clock = clock
        self._watch = Watch(gap=max(SHORTEST_GAP, settings.LEASE_SECONDS * LONGEST_GAP), grace=lock.grace)
        self._suspects: frozenset[Claim] = frozenset()
        self._is_enlisted = False

    @property
    def interval(self) -> float:
        """Seconds until the next beat."""
        usual: float = settings.LEASE_SECONDS / BEATS_PER_LEASE
        return min(usual, self._lock.grace) if self._watch.suspects else usual

    def beat(self, running: Mapping[str, Claim]) -> Beat:
        """Renew the lease, then see what was lost, stopped, forgotten, or left behind by the dead.

        `running` are the claims that the worker serves, or has yet to give back, by session.
        """
        began = self._clock()
        self._lock.hold(self.worker_id)
        if self._is_enlisted and not lease.renew(self.worker_id):
            logger.warning("Other workers have taken the sessions of this one: it had not renewed its lease in time")
            self.worker_id, self._is_enlisted = ids.worker_id(), False
            self._lock.hold(self.worker_id)
        if not self._is_enlisted:
            lease.register_worker(self.worker_id)
            self._is_enlisted = True
        found = lease.standings(self.worker_id, running)
        compared = compare(self.worker_id, running, found, self._suspects)
        self._suspects = compared.suspects
        adopted = [claim for unserved in compared.unserved if (claim := lease.adopt(unserved)) is not None]
        freed = self._free_sessions_of_the_dead()
        return Beat(self.worker_id, began, compared.lost, compared.stops, adopted, freed)

    def _free_sessions_of_the_dead(self) -> bool:
        began = self._clock()
        signs = lease.others(self.worker_id)
        free = self._lock.free(signs) if signs else set()
        freed = False
        for worker_id, sign in self._watch.look(signs, free, began=began, ended=self._clock()).items():
            if lease.take_over(worker_id, sign):
                logger.warning("Worker %s is dead; its sessions go on elsewhere", worker_id)
                freed = True
            self._lock.forget(worker_id)
        return freed

    @property
    def grace(self) -> float:
        """For how long the worker's lock may be free before others take its sessions."""
        return self._lock.grace

    def disconnected(self) -> None:
        """Begin to watch the others again: whether the database was away for them too is not known."""
        self._watch.forget()

    def end(self) -> None:
        """Give everything back; the next worker takes it at once."""
        lease.release_worker(self.worker_id)
        self._lock.release()
