"""Wakeups inside a process: hints to look at the rows now. A lost wakeup costs time, but no work."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum


class Wakeup(Enum):
    WORK = "work"
    STOP = "stop"


# (wakeup, session id, turn id of a stop)
Listener = Callable[[Wakeup, str, str], None]
_listeners: set[Listener] = set()


def listen(listener: Listener) -> Callable[[], None]:
    """Call `listener(wakeup, session id, turn id)`, from any thread, until the returned function is called."""
    _listeners.add(listener)
    return lambda: _listeners.discard(listener)


def send(wakeup: Wakeup, session_id: str, turn_id: str = "") -> None:
    for listener in tuple(_listeners):
        listener(wakeup, session_id, turn_id)
