"""Wakeups: hints to workers that they should look at the rows now. A lost wakeup costs one poll, but no work.

A wakeup goes to the runner of the same process if that can act on it; otherwise to another process, over Redis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from chat.bus.redis_wakeups import RedisSender


class WakeupKind(Enum):
    WORK = "work"
    STOP = "stop"
    ANSWER = "answer"
    MENTION = "mention"


# What any worker can act on; the others concern the one that runs the session.
FOR_ANY_WORKER = (WakeupKind.WORK, WakeupKind.MENTION)


@dataclass(frozen=True, slots=True)
class Wakeup:
    """A hint that a session is due, a turn should stop, people have answered a running call, or are mentioned.

    `worker` runs the session, as far as is known. `message_id` mentions people.
    """

    kind: WakeupKind
    session_id: str
    turn_id: str = ""
    worker: str = ""
    message_id: str = ""


# Called from any thread; returns whether this process acts on the wakeup.
Listener = Callable[[Wakeup], bool]
_listeners: set[Listener] = set()
_sender: RedisSender | None = None


def listen(listener: Listener) -> Callable[[], None]:
    """Call `listener` for each wakeup, from any thread, until the returned function is called."""
    _listeners.add(listener)
    return lambda: _listeners.discard(listener)


def send(wakeup: Wakeup) -> None:
    """Wake a worker: this process's if it can act, else one of another process. From any thread; never blocks."""
    if any(listener(wakeup) for listener in tuple(_listeners)) or not settings.REDIS_URL:
        return
    if wakeup.kind not in FOR_ANY_WORKER and not wakeup.worker:
        return  # no worker has it: the next one reads the row
    if _sender is not None:
        _sender.put(wakeup)
    else:
        from chat.bus.redis_wakeups import send_without_loop  # most installations have no Redis

        send_without_loop(wakeup)


def open_sender() -> None:
    """Send to other processes from the running loop from now on."""
    global _sender
    if settings.REDIS_URL:
        from chat.bus.redis_wakeups import RedisSender  # most installations have no Redis

        _sender = RedisSender()


async def close_sender() -> None:
    global _sender
    sender, _sender = _sender, None
    if sender is not None:
        await sender.close()
