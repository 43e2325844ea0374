"""Who may run a session: requests, claims with their fencing epoch, and the workers' leases (RUN-15).

Synchronous; each function is one transaction or part of the caller's. Each can be repeated when the answer to its
COMMIT was lost. `heartbeat.py` decides with what is read here; docs/architecture.md (Runs) has the rules.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Case, Exists, F, Q, QuerySet, When
from django.db.models.functions import Coalesce, Greatest, Now

from chat import ids
from chat.bus import wakeups
from chat.models import RunState, SessionRun, Worker

DUE = Q(wanted__gt=F("done"), owner__isnull=True)


@dataclass(frozen=True, slots=True)
class Claim:
    """The right of a worker to run one session until the session is claimed again."""

    session_id: str
    epoch: int
    worker_id: str


@dataclass(frozen=True, slots=True)
class Standing:
    """A run as its row has it, for the worker that compares its own claims with the rows."""

    epoch: int
    owner: str | None
    state: str
    turn_id: str


@dataclass(frozen=True, slots=True)
class Sign:
    """A worker's last sign of life: the value changes with every renewal. `seconds` is the length of its lease."""

    lease_until: datetime
    seconds: float


def register_worker(worker_id: str = "") -> str:
    """Register a worker, whose lease begins now, and return its id: the given one, or a new one."""
    worker_id = worker_id or ids.worker_id()
    label = f"{socket.gethostname()} {os.getpid()}"
    Worker.objects.update_or_create(id=worker_id, defaults={"label": label[:200], **_lease()})
    return worker_id


def renew(worker_id: str) -> bool:
    """Extend a worker's lease, however late. Return False if the worker was declared dead, and its sessions freed."""
    return bool(Worker.objects.filter(id=worker_id).update(**_lease()))


def others(worker_id: str) -> dict[str, Sign]:
    """Return the last signs of life of all other workers, by id."""
    rows = Worker.objects.exclude(id=worker_id).values_list("id", "lease_until", "lease_seconds")
    return {other: Sign(lease_until, seconds) for other, lease_until, seconds in rows}


def release_worker(worker_id: str) -> None:
    """Free the sessions of a worker that stops, and delete it. Being stopped is no attempt at a turn that failed."""
    with transaction.atomic():
        runs = SessionRun.objects.filter(owner=worker_id)
        runs.update(owner=None, attempts=Greatest(F("attempts"), 1) - 1)
        Worker.objects.filter(id=worker_id).delete()


def take_over(worker_id: str, sign: Sign) -> bool:
    """Free the sessions of a dead worker, and delete it, unless it has shown a sign of life since `sign`.

    Rows that are locked are left for the next call: a transaction that hangs must not stop this one. Return whether
    sessions were freed.
    """
    with transaction.atomic():
        worker = _locked(Worker.objects.filter(id=worker_id)).first()
        if worker is None or Sign(worker.lease_until, worker.lease_seconds) != sign:
            return False
        runs = SessionRun.objects.filter(owner=worker_id)
        found = list(_locked(runs.order_by("pk")).values_list("pk", flat=True))
        freed = SessionRun.objects.filter(pk__in=found).update(owner=None)
        if not runs.exists():
            worker.delete()
        return bool(freed)


def request(session_id: str) -> None:
    """Ask, inside the caller's transaction, that the session be run; wake a runner when it commits."""
    waiting_since = Case(When(wanted__gt=F("done"), then=F("due_since")), default=Now())
    SessionRun.objects.filter(session=session_id).update(wanted=F("wanted") + 1, due_since=waiting_since)
    transaction.on_commit(lambda: wakeups.send(wakeups.Wakeup.WORK, session_id))


def claim(worker_id: str, limit: int) -> list[Claim]:
    """Take up to `limit` sessions that are due, the oldest first; each gets a new epoch.

    A worker whose lease has run out gets none: it has to renew it first.
    """
    alive = Exists(Worker.objects.filter(id=worker_id, lease_until__gt=Now()))
    with transaction.atomic():
        due = _locked(SessionRun.objects.filter(DUE, alive).order_by("due_since"))
        found = list(due.values_list("session_id", "epoch")[:limit])
        SessionRun.objects.filter(pk__in=[session_id for session_id, _ in found]).update(
            owner=worker_id, claimant=worker_id, epoch=F("epoch") + 1, written=0, attempts=F("attempts") + 1
        )
    return [Claim(session_id, epoch + 1, worker_id) for session_id, epoch in found]


def adopt(claim: Claim) -> Claim | None:
    """Claim a session again that the worker owns without running it; None if its row is locked, or not as it was."""
    owned = SessionRun.objects.filter(pk=claim.session_id, owner=claim.worker_id, epoch=claim.epoch)
    with transaction.atomic():
        if not _locked(owned).exists():
            return None
        owned.update(epoch=F("epoch") + 1, claimant=claim.worker_id, written=0)
    return Claim(claim.session_id, claim.epoch + 1, claim.worker_id)


def work_is_due() -> bool:
    """Return whether `claim` would find anything. It only reads, so that an idle poll takes no write lock."""
    # In their order, although any would do: without it PostgreSQL and SQLite read all sessions instead of the index.
    return bool(SessionRun.objects.filter(DUE).order_by("due_since").values_list("pk")[:1])


def standings(worker_id: str, session_ids: Collection[str]) -> dict[str, Standing]:
    """Return the runs that the worker owns, and those of `session_ids`, by session id."""
    found = _standings(SessionRun.objects.filter(owner=worker_id))
    if missing := [session_id for session_id in session_ids if session_id not in found]:
        found |= _standings(SessionRun.objects.filter(pk__in=missing))
    return found


def give_back(claim: Claim) -> None:
    """Release a claim that was not served: the session is due again."""
    SessionRun.objects.filter(pk=claim.session_id, epoch=claim.epoch, owner=claim.worker_id).update(owner=None)


def ask_to_stop(session_id: str, user_id: int | None) -> bool:
    """Turn a running turn into a cancelling one, inside the caller's transaction. Return False if nothing runs.

    Of several people who stop a turn the first is remembered. `user_id` is None where no person stops it.
    """
    open_turn = SessionRun.objects.filter(session=session_id, state__in=[RunState.RUNNING, RunState.CANCELLING])
    turn_id = open_turn.select_for_update().values_list("turn_id", flat=True).first()
    if turn_id is None:
        return False
    stopped_by = {} if user_id is None else {"stopped_by": Coalesce("stopped_by", user_id)}
    open_turn.update(state=RunState.CANCELLING, **stopped_by)
    transaction.on_commit(lambda: wakeups.send(wakeups.Wakeup.STOP, session_id, turn_id))
    return True


def revoke(session_id: str) -> None:
    """End a session's claim for good, inside the caller's transaction: its worker is fenced, and no other claims it."""
    SessionRun.objects.filter(pk=session_id).update(owner=None, done=F("wanted"), epoch=F("epoch") + 1)


def _standings(runs: QuerySet[SessionRun]) -> dict[str, Standing]:
    rows = runs.values_list("session_id", "epoch", "owner_id", "state", "turn_id")
    return {session_id: Standing(epoch, owner, state, turn_id) for session_id, epoch, owner, state, turn_id in rows}


def _locked(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Lock rows, but for those that are locked already (SQLite locks the database as a transaction begins)."""
    return rows.select_for_update(skip_locked=True, of=("self",))


def _lease() -> dict[str, object]:
    length = settings.LEASE_SECONDS
    return {"lease_until": Now() + timedelta(seconds=length), "lease_seconds": length}
