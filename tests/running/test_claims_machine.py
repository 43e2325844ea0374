"""Tests of claims under any order of steps, and of the machine itself: it finds each known fault that is put back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from chat.models import User
from chat.runner import resume
from chat.runs import lease, lease_keeper
from chat.services.runs import locking, recording
from chat.services.runs.recording import Job, Outcome
from tests.running import claims_machine
from tests.running.claims_machine import Claims
from tests.support.effort import cases

pytestmark = pytest.mark.django_db
STEPS = 50
# Correct claims run EXAMPLES examples. For a fault, up to MAX_TRIES seeds are tried, starting with a good one.
EXAMPLES = cases(15)
MAX_TRIES = 40


def play(ana: User, number: int, *, examples: int) -> None:
    """Run some orders of steps, which the seed determines."""
    Claims.ana = ana
    limits = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(seed(number)(Claims), settings=limits)


def test_claims_hold_in_every_order(ana: User) -> None:
    """RUN-07, RUN-15: one worker at a time writes and publishes, no row is lost, and every request is served."""
    play(ana, 0, examples=EXAMPLES)


reconcile = lease_keeper.reconcile
renew = lease.renew


def nothing_unserved(*values: Any) -> lease_keeper.Reconciliation:
    """Put back a worker that does not search for sessions that it owns without running them."""
    return replace(reconcile(*values), unserved=[])


def nothing_lost(*values: Any) -> lease_keeper.Reconciliation:
    """Put back a worker that does not check whether it has lost claims."""
    return replace(reconcile(*values), lost=[])


def renewed_in_time(worker_id: str) -> bool:
    """Put back a lease that cannot be renewed late, even if no other worker has taken over its sessions."""
    running = [node for node in Claims.playing.nodes if node.keeper.worker_id == worker_id]
    is_late = any(Claims.playing.now > node.safe_until + 2.5 for node in running)
    return not is_late and renew(worker_id)


def same_epoch(run: locking.ClaimColumns, claim: lease.Claim) -> bool:
    """Put back the comparison of claims by epoch alone."""
    return run.epoch == claim.epoch and run.owner_id is not None


def unnumbered(jobs: Iterable[Job], locked: locking.Locked) -> Iterator[Outcome]:
    """Put back jobs without numbers, which are written twice when they are repeated."""
    for job in jobs:
        run = locked.runs.get(job.claim.session_id)
        yield Outcome.WRITTEN if run is not None and run.admits(job.claim) else Outcome.FENCED


@dataclass(frozen=True)
class Fault:
    """A fault that claims once had: the machine's message, the patch that puts the fault back, and the first seed."""

    found: str
    place: object
    name: str
    value: object
    number: int


FAULTS = {
    "the answer to a claim is lost": Fault("never served", lease_keeper, "reconcile", nothing_unserved, 4),
    "the network is silent": Fault("text is published by", claims_machine, "SAFE_SHARE", math.inf, 7),
    "a lease is renewed late": Fault("that no other worker has", lease, "renew", renewed_in_time, 1),
    "a failover hands out an epoch twice": Fault(
        "of another one|closed as failed", locking.ClaimColumns, "admits", same_epoch, 1
    ),
    "the answer to a commit is lost": Fault("closed as failed", recording, "_job_outcomes", unnumbered, 0),
    "the loser does not notice": Fault("does not know that one is lost", lease_keeper, "reconcile", nothing_lost, 2),
    "a turn ends its process": Fault("again and again", resume, "MAX_CLAIMS", 10**9, 5),
}


@pytest.mark.sqlite  # the result does not depend on the database
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_fault_that_is_put_back_is_found(ana: User, monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    """RUN-15: the machine finds each known fault when it is put back."""
    monkeypatch.setattr(fault.place, fault.name, fault.value)
    with pytest.raises(AssertionError, match=fault.found):
        search(ana, fault.number)


def search(ana: User, first: int) -> None:
    for number in range(first, first + MAX_TRIES):
        play(ana, number, examples=3)
