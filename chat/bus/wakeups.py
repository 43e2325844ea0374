"""Wakeups: hints to workers to query the rows now. If a wakeup is lost, the work starts with the next poll.

A wakeup is sent to the runner of the same process if that can act on it, otherwise over Redis to another process.
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


# The kinds that any worker can act on. All others are for the worker that runs the session.
FOR_ANY_WORKER = (WakeupKind.WORK, WakeupKind.MENTION)


@dataclass(frozen=True, slots=True)
class Wakeup:
    """A hint that a session is due, a turn should stop, users have answered a running call, or users are mentioned.

    `worker` is the worker that runs the session, or "" if unknown. `message_id` is the message that mentions users.
    """

    kind: WakeupKind
    session_id: str
    turn_id: str = ""
    worker: str = ""
    message_id: str = ""


# May be called from any thread, and returns whether this process acts on the wakeup.
Listener = Callable[[Wakeup], bool]
_listeners: set[Listener] = set()
_sender: RedisSender | None = None


def listen(listener: Listener) -> Callable[[], None]:
    """Call `listener` for each wakeup, from any thread, until the returned function is called."""
    _listeners.add(listener)
    return lambda: _listeners.discard(listener)


def send(wakeup: Wakeup) -> None:
    """Wake the worker of this process if it can act, else one of another process. May be called from any thread.

    With a sender, this does not block.
    """
    if any(listener(wakeup) for listener in tuple(_listeners)) or not settings.REDIS_URL:
        return
    if wakeup.kind not in FOR_ANY_WORKER and not wakeup.worker:
        return  # no worker runs the session, and the next one will read the row
    if _sender is not None:
        _sender.put(wakeup)
    else:
        from chat.bus.redis_wakeups import send_without_loop  # late, because most installations have no Redis

        send_without_loop(wakeup)


def open_sender() -> None:
    """Send wakeups to other processes from the running loop from now on."""
    global _sender
    if settings.REDIS_URL:
        from chat.bus.redis_wakeups import RedisSender  # late, because most installations have no Redis

        _sender = RedisSender()


async def close_sender() -> None:
    """Stop sending wakeups to other processes."""
    global _sender
    sender, _sender = _sender, None
    if sender is not None:
        await sender.close()
