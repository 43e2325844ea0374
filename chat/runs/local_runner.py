"""The runner of this process for services, which can claim a turn in the transaction in which they begin it.

In a process without a runner, turns are claimed later by another process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from chat.models import Session
from chat.runs.lease import Claim
from chat.runs.turn_state import TurnState


@dataclass(frozen=True, slots=True)
class BegunTurn:
    """A turn that has just begun, with its claim. `session` is the session's row at the end of the transaction.

    `last_sequence` is the sequence of its message, so the session has at most this many messages.
    """

    claim: Claim
    state: TurnState
    session: Session
    last_sequence: int


class LocalRunner(Protocol):
    """A runner that takes turns from any thread. After each `reserve` that returns an id, call `take` or `release`."""

    def reserve(self) -> str:
        """Reserve a place for one session. Return the id of the worker, or "" if it takes no more sessions now."""

    def take(self, turn: BegunTurn) -> None:
        """Run a turn whose claim has been committed, in the reserved place. Never raises."""

    def release(self) -> None:
        """Give up a reserved place."""


_runner: LocalRunner | None = None


def register(runner: LocalRunner) -> Callable[[], None]:
    """Offer turns to this runner until the returned function is called."""
    global _runner
    _runner = runner

    def unregister() -> None:
        global _runner
        if _runner is runner:
            _runner = None

    return unregister


def local_runner() -> LocalRunner | None:
    """Return the runner of this process, or None if other processes run the agents."""
    return _runner
