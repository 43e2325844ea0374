"""Requests to run a session, claims with a fencing epoch, and leases of workers (RUN-15).

All functions are synchronous. Each is one transaction or a part of the caller's transaction, and can be repeated if the
answer to its COMMIT was lost.
"""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Case, Count, Exists, F, Q, QuerySet, When
from django.db.models.functions import Coalesce, Greatest, Now

from chat import ids
from chat.bus.wakeups import Wakeup, WakeupKind, send
from chat.models import RunState, SessionRun, Worker
from chat.overrides.composed_queries import Composed

# If a claim cannot take all due sessions, it chooses among this many of the oldest ones.
FAIR_WINDOW = 1000
DUE = Q(wanted__gt=F("done"), owner__isnull=True)


@dataclass(frozen=True, slots=True)
class Claim:
    """The right of a worker to run one session until the session is claimed again."""

    session_id: str
    epoch: int
    worker_id: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """Columns of a SessionRun, which a worker compares with its own claims."""

    epoch: int
    owner: str | None
    state: str
    turn_id: str
    is_leaving: bool = False


@dataclass(frozen=True, slots=True)
class Renewal:
    """The last renewal of a worker's lease; each renewal changes the value. `seconds` is the length of the lease."""

    lease_until: datetime
    seconds: float


def register_worker(worker_id: str = "") -> str:
    """Register a worker with a lease from now, and return its id: the given one, or a new one."""
    worker_id = worker_id or ids.worker_id()
    label = f"{socket.gethostname()} {os.getpid()}"
    columns = {"label": label[:200], "capacity": settings.CAPACITY}
    Worker.objects.update_or_create(id=worker_id, defaults={**columns, **_lease()})
    return worker_id


def renew(worker_id: str) -> bool:
    """Extend a worker's lease, even after it has expired. Return False if other workers have removed the worker."""
    return bool(Worker.objects.filter(id=worker_id).update(**_lease()))


def is_drained(worker_id: str) -> bool:
    """Return whether a worker was asked to claim no sessions and to hand over its own."""
    return Worker.objects.filter(id=worker_id, draining=True).exists()


def set_draining(worker_id: str, draining: bool) -> bool:
    """Ask a worker to claim no sessions and to hand over its own, or to work again.

    The worker finds the request with its next heartbeat. Return False if this changes nothing.
    """
    return bool(Worker.objects.filter(id=worker_id, draining=not draining).update(draining=draining))


def other_workers(worker_id: str) -> dict[str, Renewal]:
    """Return the last renewals of all other workers, by worker id."""
    return {other: Renewal(lease_until, seconds) for other, lease_until, seconds in _OTHERS.read(worker_id)}


_OTHERS = Composed(
    lambda worker_id: Worker.objects.exclude(id=worker_id).values_list("id", "lease_until", "lease_seconds")
)


def release_worker(worker_id: str) -> None:
    """Free the sessions of a worker that stops, and delete it. This does not count as a failed attempt at a turn."""
    with transaction.atomic():
        runs = SessionRun.objects.filter(owner=worker_id)
        freed = list(runs.values_list("pk", flat=True))
        runs.update(owner=None, attempts=Greatest(F("attempts"), 1) - 1)
        Worker.objects.filter(id=worker_id).delete()
        wake_on_commit(*freed)


def take_over(worker_id: str, renewal: Renewal) -> bool:
    """Free the sessions of a dead worker, and delete it, unless it has renewed its lease after `renewal`.

    Locked rows are skipped, so that a hanging transaction cannot block this one. The next call frees them. Return
    whether sessions were freed.
    """
    with transaction.atomic():
        worker = _locked(Worker.objects.filter(id=worker_id)).first()
        if worker is None or Renewal(worker.lease_until, worker.lease_seconds) != renewal:
            return False
        runs = SessionRun.objects.filter(owner=worker_id)
        found = list(_locked(runs.order_by("pk")).values_list("pk", flat=True))
        SessionRun.objects.filter(pk__in=found).update(owner=None)
        if not runs.exists():
            worker.delete()
        wake_on_commit(*found)
        return bool(found)


def request(session_id: str) -> None:
    """Request a run of the session in the caller's transaction, and wake a runner on commit."""
    SessionRun.objects.filter(session=session_id).update(**_another_run())
    wake_on_commit(session_id)


def _another_run() -> dict[str, Any]:
    """Return the changes of a row that request a run."""
    due_since = Case(When(wanted__gt=F("done"), then=F("due_since")), default=Now())
    return {"wanted": F("wanted") + 1, "due_since": due_since}


def wake_on_commit(*session_ids: str) -> None:
    """Wake a worker for each due session when the caller's transaction commits."""

    def wake() -> None:
        for session_id in session_ids:
            send(Wakeup(WakeupKind.WORK, session_id))

    transaction.on_commit(wake)


def claim(worker_id: str, limit: int) -> list[Claim]:
    """Claim up to `limit` due sessions, the oldest first. Each gets a new epoch.

    A worker whose lease has expired gets none until it renews the lease. A worker that has handed over a session does
    not get it back while there are other workers. If more than `limit` sessions are due, sessions of workspaces with
    the fewest running sessions come first, so that a workspace with a long backlog does not delay the others.
    """
    with transaction.atomic():
        chosen = _first_due(limit + 1).read(worker_id)
        if len(chosen) > limit:
            oldest = _claimable_by(worker_id).values_list("session_id", "session__workspace_id")[:FAIR_WINDOW]
            chosen = fair_order(oldest, _running_by_workspace())[:limit]
        # Lock only the chosen rows, because other workers skip locked rows, and stop if they find no others.
        found = _CHOSEN.read(worker_id, *chosen) if chosen else []
        SessionRun.objects.filter(pk__in=[session_id for session_id, _ in found]).update(
            owner=worker_id, claimant=worker_id, epoch=F("epoch") + 1, written=0, attempts=F("attempts") + 1
        )
    return [Claim(session_id, epoch + 1, worker_id) for session_id, epoch in found]


def _claimable_by(worker_id: str) -> QuerySet[SessionRun]:
    """Return the due sessions that a worker may claim, the oldest first."""
    alive = Exists(Worker.objects.filter(id=worker_id, lease_until__gt=Now()))
    others = Exists(Worker.objects.filter(lease_until__gt=Now(), draining=False).exclude(id=worker_id))
    may_have = Q(leaving_epoch=None) | ~Q(leaving_epoch=F("epoch")) | ~Q(claimant=worker_id) | ~others
    return SessionRun.objects.filter(DUE, alive, may_have).order_by("due_since")


@lru_cache(maxsize=128)  # the count varies with the worker's free places
def _first_due(count: int) -> Composed[str]:
    return Composed(lambda worker_id: _claimable_by(worker_id).values_list("session_id", flat=True)[:count])


def _lock_claimable(worker_id: str, *session_ids: str) -> QuerySet[SessionRun, tuple[str, int]]:
    chosen = _claimable_by(worker_id).filter(pk__in=session_ids)
    return _locked(chosen).values_list("session_id", "epoch")


_CHOSEN = Composed(_lock_claimable)


def fair_order(oldest: Iterable[tuple[str, int]], running: Mapping[int, int]) -> list[str]:
    """Return session ids in an order in which all workspaces get the same number of places.

    `oldest` are pairs of session and workspace, the oldest first. `running` is the number of running sessions of each
    workspace.
    """
    seen = Counter(running)
    places = []
    for place, (session_id, workspace) in enumerate(oldest):
        places.append((seen[workspace], place, session_id))
        seen[workspace] += 1
    return [session_id for _, _, session_id in sorted(places)]


def _running_by_workspace() -> dict[int, int]:
    claimed = SessionRun.objects.filter(owner__isnull=False).order_by()
    return dict(claimed.values_list("session__workspace_id").annotate(Count("pk")))


def run_of(claim: Claim) -> QuerySet[SessionRun]:
    """Return the run of a claim as a query, which finds no row if the claim is lost."""
    return SessionRun.objects.filter(pk=claim.session_id, epoch=claim.epoch, owner=claim.worker_id)


def adopt(claim: Claim) -> Claim | None:
    """Claim a session again that the worker owns but does not run. Return None if its row is locked or has changed."""
    owned = run_of(claim)
    with transaction.atomic():
        if not _locked(owned).exists():
            return None
        owned.update(epoch=F("epoch") + 1, claimant=claim.worker_id, written=0)
    return Claim(claim.session_id, claim.epoch + 1, claim.worker_id)


def is_work_due() -> bool:
    """Return whether a session is due. This only reads, so that an idle poll takes no write lock."""
    # Any row is enough, but without the order, both databases scan all sessions instead of the index.
    return bool(_ANY_DUE.read())


_ANY_DUE = Composed(lambda: SessionRun.objects.filter(DUE).order_by("due_since").values_list("pk")[:1])


def run_rows(worker_id: str, session_ids: Collection[str]) -> dict[str, RunRow]:
    """Return the runs that the worker owns and those of `session_ids`, by session id."""
    found = _read_run_rows(SessionRun.objects.filter(owner=worker_id))
    if missing := [session_id for session_id in session_ids if session_id not in found]:
        found |= _read_run_rows(SessionRun.objects.filter(pk__in=missing))
    return found


def give_back(claim: Claim, *, failed: bool = True) -> None:
    """Release a claim whose session is still due. If it has `failed`, it counts as an attempt at the turn."""
    attempts = F("attempts") if failed else Greatest(F("attempts"), 1) - 1
    if run_of(claim).update(owner=None, attempts=attempts):
        wake_on_commit(claim.session_id)


def ask_to_stop(session_id: str, user_id: int | None) -> bool:
    """Mark the open turn as cancelling in the caller's transaction. Return False if no turn is open.

    The first user who stops a turn is recorded. `user_id` is None if no user stops it. A turn that waits for users has
    no worker, so a run is requested that ends it.
    """
    open_turn = SessionRun.objects.filter(session=session_id).exclude(state=RunState.IDLE)
    found = open_turn.select_for_update().values_list("turn_id", "state", "owner_id").first()
    if found is None:
        return False
    turn_id, state, owner = found
    changes: dict[str, Any] = {} if user_id is None else {"stopped_by": Coalesce("stopped_by", user_id)}
    if state == RunState.WAITING:
        changes |= _another_run()
        wake_on_commit(session_id)
    # One statement: after a second change in the same transaction, PostgreSQL checks the foreign keys of the row when
    # it commits. It would then wait for the session's lock, whose holder may wait for this row.
    open_turn.update(state=RunState.CANCELLING, **changes)
    wakeup = Wakeup(WakeupKind.STOP, session_id, turn_id, owner or "")
    transaction.on_commit(lambda: send(wakeup))
    return True


def ask_to_hand_over(session_id: str) -> bool:
    """Ask the worker of a session to hand it over before the next response. Return False if no worker has it.

    The worker finds the request with its next heartbeat.
    """
    claimed = SessionRun.objects.filter(pk=session_id, owner__isnull=False)
    return bool(claimed.update(leaving_epoch=F("epoch")))


def take_from_worker(session_id: str) -> None:
    """Fence the worker of a session in the caller's transaction. The session is due again, for another worker."""
    claimed = SessionRun.objects.filter(pk=session_id, owner__isnull=False)
    if claimed.update(owner=None, leaving_epoch=F("epoch")):
        wake_on_commit(session_id)


def revoke(session_id: str) -> None:
    """End a session's claim in the caller's transaction: its worker is fenced, and the session is not due."""
    SessionRun.objects.filter(pk=session_id).update(owner=None, done=F("wanted"), epoch=F("epoch") + 1)


def _read_run_rows(runs: QuerySet[SessionRun]) -> dict[str, RunRow]:
    rows = runs.values_list("session_id", "epoch", "owner_id", "state", "turn_id", "leaving_epoch")
    return {
        session_id: RunRow(epoch, owner, state, turn_id, leaving == epoch)
        for session_id, epoch, owner, state, turn_id, leaving in rows
    }


def _locked(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Return a query that locks its rows and skips locked ones. SQLite locks the whole database at BEGIN instead."""
    return rows.select_for_update(skip_locked=True, of=("self",))


def _lease() -> dict[str, object]:
    length = settings.LEASE_SECONDS
    return {"lease_until": Now() + timedelta(seconds=length), "lease_seconds": length}
