"""Nudges inside a process: hints that a look at the rows would pay now. Losing one costs time, never truth."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum


class Wakeup(Enum):
    WORK = "work"
    STOP = "stop"


# (what, session id, turn id of a stop)
Listener = Callable[[Wakeup, str, str], None]
_listeners: set[Listener] = set()


def listen(listener: Listener) -> Callable[[], None]:
    """Call `listener(nudge, session id, turn id)`, from any thread, until the returned function is called."""
    _listeners.add(listener)
    return lambda: _listeners.discard(listener)


def send(nudge: Wakeup, session_id: str, turn_id: str = "") -> None:
    for listener in tuple(_listeners):
        listener(nudge, session_id, turn_id)
