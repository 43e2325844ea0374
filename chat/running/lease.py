"""Who may run a session: requests, claims with their fencing epoch, and the workers' leases (RUN-15).

Synchronous; each function is one transaction or part of the caller's.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Now

from chat import ids
from chat.models import RunState, SessionRun, Worker
from chat.running import nudge


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to run one session until somebody claims it with a higher epoch."""

    session_id: str
    epoch: int


def enlist() -> str:
    """Enter a new worker and return its id; its lease begins now."""
    label = f"{socket.gethostname()} {os.getpid()}"
    worker = ids.worker_id()
    Worker.objects.create(id=worker, label=label[:200], lease_until=Now() + _lease())
    return worker


def renew(worker_id: str) -> bool:
    """Move the worker's lease on. False: it has run out, and others may have taken what it ran."""
    alive = Worker.objects.filter(id=worker_id, lease_until__gt=Now())
    return bool(alive.update(lease_until=Now() + _lease()))


def retire(worker_id: str) -> None:
    """Give back everything that the worker has claimed, unfinished; the next worker takes it over at once."""
    with transaction.atomic():
        SessionRun.objects.filter(owner=worker_id).update(owner=None)
        Worker.objects.filter(id=worker_id).delete()


def forget_dead() -> None:
    """Delete workers whose lease ended long ago and that own nothing."""
    dead = Worker.objects.filter(lease_until__lt=Now() - timedelta(hours=1), runs__isnull=True)
    dead.delete()


def request(session_id: str) -> None:
    """Ask, inside the caller's transaction, that the session be run; wake a runner when it commits."""
    SessionRun.objects.filter(session=session_id).update(wanted=F("wanted") + 1)
    transaction.on_commit(lambda: nudge.send(nudge.Nudge.WORK, session_id))


def claim(worker_id: str, limit: int) -> list[Claim]:
    """Take up to `limit` sessions that are due, or whose worker's lease has run out; each gets a new epoch."""
    with transaction.atomic():
        runs = SessionRun.objects.filter(_due()).order_by("pk")
        if connection.features.has_select_for_update_skip_locked:
            runs = runs.select_for_update(skip_locked=True, of=("self",))
        found = list(runs.values_list("session_id", "epoch")[:limit])
        SessionRun.objects.filter(pk__in=[session_id for session_id, _ in found]).update(
            owner=worker_id, epoch=F("epoch") + 1
        )
    return [Claim(session_id, epoch + 1) for session_id, epoch in found]


def work_is_due() -> bool:
    """Whether `claim` would find anything; reads only, so that an idle poll takes no write lock."""
    return SessionRun.objects.filter(_due()).exists()


@dataclass(frozen=True, slots=True)
class Owned:
    """A claim as the rows have it; `stop_turn` is the turn that somebody asked to stop, "" if none."""

    epoch: int
    stop_turn: str


def owned(worker_id: str) -> dict[str, Owned]:
    """List what a worker has claimed, by session id."""
    rows = SessionRun.objects.filter(owner=worker_id).values_list("session_id", "epoch", "state", "turn_id")
    return {
        session_id: Owned(epoch, turn_id if state == RunState.CANCELLING else "")
        for session_id, epoch, state, turn_id in rows
    }


def give_back(claim: Claim) -> None:
    """Let go of a claim without having served it: it is due again."""
    SessionRun.objects.filter(pk=claim.session_id, epoch=claim.epoch).update(owner=None)


def ask_to_stop(session_id: str, user_id: int | None) -> bool:
    """Turn a running turn into a cancelling one, inside the caller's transaction. False: nothing runs.

    Of several people who stop a turn the first is remembered. `user_id` is None where no person stops it.
    """
    open_turn = SessionRun.objects.filter(session=session_id, state__in=[RunState.RUNNING, RunState.CANCELLING])
    turn_id = open_turn.select_for_update().values_list("turn_id", flat=True).first()
    if turn_id is None:
        return False
    stopped_by = {} if user_id is None else {"stopped_by": Coalesce("stopped_by", user_id)}
    open_turn.update(state=RunState.CANCELLING, **stopped_by)
    transaction.on_commit(lambda: nudge.send(nudge.Nudge.STOP, session_id, turn_id))
    return True


def revoke(session_id: str) -> None:
    """End a session's claim for good, inside the caller's transaction: its worker is fenced, and no other claims it."""
    SessionRun.objects.filter(pk=session_id).update(owner=None, done=F("wanted"), epoch=F("epoch") + 1)


def _due() -> Q:
    return Q(wanted__gt=F("done"), owner__isnull=True) | Q(owner__lease_until__lt=Now())


def _lease() -> timedelta:
    return timedelta(seconds=settings.LEASE_SECONDS)
