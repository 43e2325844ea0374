"""Claims under every order of steps; and each known fault of a claim, put back, is found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from chat.models import User
from chat.running import lease, lease_keeper, opening
from chat.services import recording
from chat.services.recording import Job, Outcome
from tests.running import claims_machine
from tests.running.claims_machine import Claims

pytestmark = pytest.mark.django_db
EXAMPLES = 30
STEPS = 50


def play(ana: User, examples: int) -> None:
    Claims.ana = ana
    limits = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        derandomize=not __import__("os").environ.get("RND"),
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Claims, settings=limits)


def test_claims_hold_in_every_order(ana: User) -> None:
    """RUN-07, RUN-15: one worker at a time writes and publishes, no row is lost, everything asked for is served."""
    play(ana, EXAMPLES)


compare = lease_keeper.compare
renew = lease.renew


def nothing_unserved(*values: Any) -> lease_keeper.Comparison:
    """The worker does not look for sessions that it owns and does not run."""
    return replace(compare(*values), unserved=[])


def nothing_lost(*values: Any) -> lease_keeper.Comparison:
    """The worker does not look for claims that are not its own any more."""
    return replace(compare(*values), lost=[])


def renewed_in_time(worker_id: str) -> bool:
    """A late renewal is refused, although no other worker has the sessions."""
    running = [node for node in Claims.playing.nodes if node.keeper.worker_id == worker_id]
    is_late = any(Claims.playing.now > node.safe_until + 2.5 for node in running)
    return not is_late and renew(worker_id)


def same_epoch(run: recording._Run, claim: lease.Claim) -> bool:
    """A claim is recognised by its epoch alone."""
    return run.epoch == claim.epoch and run.owner is not None


def unnumbered(jobs: Iterable[Job], locked: recording._Locked) -> Iterator[Outcome]:
    """Jobs have no numbers: what was written is written again."""
    for job in jobs:
        run = locked.runs.get(job.claim.session_id)
        yield Outcome.WRITTEN if run is not None and run.admits(job.claim) else Outcome.FENCED


FAULTS: dict[str, tuple[str, list[tuple[object, str, object]]]] = {
    "the answer to a claim is lost": ("never served", [(lease_keeper, "compare", nothing_unserved)]),
    "the network is silent": ("text is published by", [(claims_machine, "SAFE_SHARE", math.inf)]),
    "a lease is renewed late": ("that no other worker has", [(lease, "renew", renewed_in_time)]),
    "a failover hands out an epoch twice": (
        "of another one|closed as failed",
        [(recording._Run, "admits", same_epoch)],
    ),
    "the answer to a commit is lost": ("closed as failed", [(recording, "_judge", unnumbered)]),
    "the loser is not told": ("does not know that one is lost", [(lease_keeper, "compare", nothing_lost)]),
    "a turn ends its process": ("again and again", [(opening, "MOST_ATTEMPTS", 10**9)]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_that_is_put_back_is_found(ana: User, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """RUN-15: the machine is strict enough."""
    found, patches = FAULTS[fault]
    for place, name, value in patches:
        monkeypatch.setattr(place, name, value)
    with pytest.raises(AssertionError, match=found):
        play(ana, 2 * EXAMPLES)
