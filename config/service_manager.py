"""Notifications to systemd (sd_notify) for units with Type=notify and WatchdogSec: ready, stopping, and alive.

Without the variable NOTIFY_SOCKET, which systemd sets, nothing is sent.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress

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
    """Report that the process is ready. If systemd has a watchdog, start a task for signs of life, and return it."""
    notify("READY=1")
    period = watchdog_seconds()
    return asyncio.get_running_loop().create_task(_live(period / SIGNS_PER_PERIOD)) if period else None


def stopping() -> None:
    """Report that the process is about to stop."""
    notify("STOPPING=1")


async def _live(interval: float) -> None:
    while True:
        notify("WATCHDOG=1")
        await asyncio.sleep(interval)
