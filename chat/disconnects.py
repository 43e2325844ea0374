"""Detect that the client of a request has disconnected, for synchronous views that take long.

Django cancels the coroutine of a request whose client has disconnected, but not the thread in which its view runs.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock
from typing import Any

from django.http import HttpRequest

KEY = "parley.disconnect"


class Disconnect:
    """An event that is set when the client disconnects. Thread-safe."""

    def __init__(self) -> None:
        self._event = Event()
        self._lock = Lock()
        self._callbacks: list[Callable[[], None]] = []

    def is_set(self) -> bool:
        return self._event.is_set()

    def set(self) -> None:
        with self._lock:
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def call(self, callback: Callable[[], None]) -> None:
        """Call a function when the client disconnects, or immediately if it has."""
        with self._lock:
            if not self._event.is_set():
                self._callbacks.append(callback)
                return
        callback()


def watch_disconnect(scope: dict[str, Any], receive: Callable[[], Any]) -> Callable[[], Any]:
    """Create a request's Disconnect, and return a `receive` that sets it when the client disconnects."""
    scope[KEY] = disconnect = Disconnect()

    async def watching() -> Any:
        message = await receive()
        if message["type"] == "http.disconnect":
            disconnect.set()
        return message

    return watching


def disconnect_of(request: HttpRequest) -> Disconnect:
    """Return the request's Disconnect; it is never set on servers that do not report disconnects."""
    scope: dict[str, Any] = getattr(request, "scope", {})
    found: Disconnect = scope.get(KEY) or Disconnect()
    return found
