"""The two cores of a measurement, and their load by other programs."""

from __future__ import annotations

import os
import time

SERVER_CORE = 0
LOAD_CORE = 1
ROUNDS = 1_000_000


def use_other_core() -> None:
    """Run this process on the other core. The server is started on its own core."""
    os.sched_setaffinity(0, {LOAD_CORE})


def state() -> str:
    """Return the load, and the CPU milliseconds of a fixed loop on the server's core as a measure of its speed."""
    os.sched_setaffinity(0, {SERVER_CORE})
    began, total = time.process_time(), 0
    for number in range(ROUNDS):
        total += number * number
    taken = time.process_time() - began
    use_other_core()
    return f"load {os.getloadavg()[0]:.1f}, fixed loop {taken * 1000:.0f} ms"
