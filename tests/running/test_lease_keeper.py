"""What a worker concludes from the rows about the claims that it serves; pure functions."""

from __future__ import annotations

import pytest

from chat.models import RunState
from chat.runs.lease import Claim, RunRow
from chat.runs.lease_keeper import reconcile

MINE = Claim("s", 3, "w")
RUNNING, CANCELLING, IDLE = RunState.RUNNING, RunState.CANCELLING, RunState.IDLE


def row(epoch: int = 3, owner: str | None = "w", state: str = RUNNING) -> dict[str, RunRow]:
    return {"s": RunRow(epoch, owner, state, "t")}


@pytest.mark.parametrize(
    ("worker", "found", "lost"),
    [
        ("w", row(), False),
        ("w", {}, True),
        ("w", row(epoch=4), True),
        ("w", row(epoch=2), True),
        ("w", row(owner="w_other"), True),
        ("w_new", row(), True),  # the worker had been declared dead, and has had another id since
        ("w", row(owner=None, state=IDLE), False),  # the turn has just ended
    ],
)
def test_claim_is_lost_with_its_epoch_or_its_owner(worker: str, found: dict[str, RunRow], lost: bool) -> None:
    """RUN-15: a claim is lost if its epoch or its owner differs, because after a failover one of them may be the
    same."""
    compared = reconcile(worker, {"s": MINE}, found, frozenset())
    assert (compared.lost, compared.stops) == ([MINE] if lost else [], {})
    assert compared.suspects == frozenset()


def test_claim_without_an_owner_is_lost_at_the_second_look() -> None:
    """RUN-15: at the first read, the row may show a change that the worker is about to learn of, such as its own
    release."""
    first = reconcile("w", {"s": MINE}, row(owner=None), frozenset())
    assert (first.lost, first.suspects) == ([], frozenset([MINE]))
    second = reconcile("w", {"s": MINE}, row(owner=None), first.suspects)
    assert (second.lost, second.suspects) == ([MINE], frozenset())


def test_session_without_service_is_found_at_the_second_look() -> None:
    """RUN-15: the second read proves that the answer to a claim is lost and not just late."""
    first = reconcile("w", {}, row(), frozenset())
    assert (first.unserved, first.suspects) == ([], frozenset([MINE]))
    assert reconcile("w", {}, row(), first.suspects).unserved == [MINE]
    assert reconcile("w", {}, row(epoch=4), first.suspects).unserved == []
    assert reconcile("w", {"s": MINE}, row(), first.suspects).unserved == []


def test_stop_is_read_for_own_claims_alone() -> None:
    """RUN-07: a worker does not stop the turns of other workers."""
    assert reconcile("w", {"s": MINE}, row(state=CANCELLING), frozenset()).stops == {"s": "t"}
    assert reconcile("w", {"s": MINE}, row(epoch=4, state=CANCELLING), frozenset()).stops == {}
