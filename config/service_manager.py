"""The restart of a process that hangs, and notifications to systemd (sd_notify): ready, stopping, and alive.

systemd restarts a unit with Type=notify and WatchdogSec that sends no signs of life. Without the variable
NOTIFY_SOCKET, which systemd sets, nothing is sent. Container runtimes restart only processes that have ended. With
HANG_SECONDS, a process whose event loop hangs therefore ends itself.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import socket
from contextlib import suppress

from django.conf import settings

# The number of signs of life in a period of the watchdog.
SIGNS_PER_PERIOD = 3


def notify(state: str) -> None:
    """Send a state such as READY=1. Failures are ignored: the service manager notices them itself."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # an abstract socket
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.connect(address)
        channel.sendall(state.encode())


def watchdog_seconds() -> float:
    """Return the seconds without a sign of life after which systemd restarts this process, or 0 if it does not."""
    is_for_us = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    period = os.environ.get("WATCHDOG_USEC", "")
    return int(period) / 1_000_000 if is_for_us and period.isdecimal() else 0.0


async def ready() -> asyncio.Task[None] | None:
    """Report that the process is ready. If something waits for signs of life, start a task for them, and return it."""
    notify("READY=1")
    periods = [each for each in (watchdog_seconds(), settings.HANG_SECONDS) if each]
    return asyncio.get_running_loop().create_task(_live(min(periods) / SIGNS_PER_PERIOD)) if periods else None


def stopping() -> None:
    """Report that the process is about to stop."""
    notify("STOPPING=1")


async def _live(interval: float) -> None:
    try:
        while True:
            notify("WATCHDOG=1")
            if settings.HANG_SECONDS:
                # Its thread prints the stacks of all threads and ends the process, even if one of them holds the
                # interpreter's lock.
                faulthandler.dump_traceback_later(settings.HANG_SECONDS, exit=True)
            await asyncio.sleep(interval)
    finally:
        faulthandler.cancel_dump_traceback_later()
