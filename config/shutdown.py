"""A hook for shutdown signals. It ends responses without an end, because the server waits for them before it stops."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def on_shutdown_signal(callback: Callable[[], None]) -> Iterator[None]:
    """Call `callback` on the running loop at SIGINT and SIGTERM, and then the server's own handler."""
    if threading.current_thread() is not threading.main_thread():  # other threads cannot set handlers
        yield
        return
    loop = asyncio.get_running_loop()
    servers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(callback)
        if callable(server := servers[signal.Signals(number)]):
            server(number, frame)

    ours = [each for each, server in servers.items() if callable(server)]
    for each in ours:
        signal.signal(each, handle)
    try:
        yield
    finally:
        for each in ours:
            if signal.getsignal(each) is handle:
                signal.signal(each, servers[each])
