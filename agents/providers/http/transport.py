"""The SDKs' connections: their limits and timeouts, and how long an SDK may wait before a retry."""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypedDict, TypeVar

import httpx2

from agents.providers.failures import wait_in
from agents.providers.http.errors import retry_after

T = TypeVar("T")

# If a server asks for a wait of at most this many seconds, the SDK waits and retries. For a longer wait, the agent loop
# decides (`agents.loop`), and users see it.
MAX_SDK_WAIT = 10.0
# The statuses of refusals that ask to wait.
TEMPORARY = frozenset({429, 503})
# A session has one stream at a time. With the SDKs' own limit of 1,000 connections, stream 1,001 would wait without an
# error.
MAX_CONNECTIONS = 10_000
# In seconds: long enough for a tool round, so that the next request can use the open connection.
KEEP_ALIVE = 60.0
# These never use a proxy of the environment (HTTP_PROXY), which cannot reach this machine. Go does the same.
DIRECT = ("all://localhost", "all://127.0.0.1", "all://[::1]")


class ClientOptions(TypedDict):
    """Arguments of the SDKs' aiohttp clients."""

    verify: ssl.SSLContext
    limits: httpx2.Limits
    timeout: httpx2.Timeout
    event_hooks: dict[str, list[Callable[..., Any]]]
    mounts: dict[str, None]


def client_options(connect_timeout: float) -> ClientOptions:
    """Return the options of the connections.

    The connections have no read timeout. While a response streams, `ReadTimeout` limits the time without data. It
    costs less per chunk, and its limit can change after the first word.
    """
    return {
        "verify": _certificates(),
        "limits": httpx2.Limits(
            max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS, keepalive_expiry=KEEP_ALIVE
        ),
        "timeout": httpx2.Timeout(None, connect=connect_timeout),
        "event_hooks": {"response": [_copy_stated_wait, _refuse_long_waits]},
        "mounts": dict.fromkeys(DIRECT),
    }


def is_long_wait(seconds: float | None) -> bool:
    """Return whether a server asks for a longer wait than the SDKs may do."""
    return seconds is not None and seconds > MAX_SDK_WAIT


def body_of(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """Return an iterator of the response's bytes. Skip the layer for decompression if the response does not need it."""
    if response.headers.get("content-encoding", "identity") == "identity":
        return response.aiter_raw()
    return response.aiter_bytes()


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Read the trusted certificates. Cached, because this blocks the event loop for 40 ms."""
    return httpx2.create_ssl_context()


async def _copy_stated_wait(response: httpx2.Response) -> None:
    """Copy a wait from the body of a refusal to the header, where the SDK and the errors for users read it (RUN-10)."""
    if response.status_code in TEMPORARY and retry_after(response.headers) is None:
        seconds = wait_in(await response.aread())
        if seconds is not None:
            response.headers["retry-after"] = str(seconds)


async def _refuse_long_waits(response: httpx2.Response) -> None:
    """Prevent the SDK from waiting for a long Retry-After, because users would not see why nothing happens (RUN-10)."""
    if is_long_wait(retry_after(response.headers)):
        response.headers["x-should-retry"] = "false"


class ReadTimeout:
    """A replacement for asyncio.timeout around each of many reads, with one timer for all of them.

    asyncio.timeout makes and cancels a timer for each read, which costs as much as parsing the data. Here, a read only
    stores its deadline, which the timer checks when it fires. Only the read is ever cancelled, so this can be used in
    an async generator, whose consumer must not be cancelled while it handles an event.
    """

    def __init__(self, error: Callable[[float], Exception]) -> None:
        """Store `error`, which gets the number of seconds and returns the exception to raise."""
        self._error = error
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._reader: asyncio.Task[object] | None = None
        self._expired = False

    async def wait_for(self, awaitable: Awaitable[T], seconds: float) -> T:
        """Return the result of an awaitable. After `seconds`, cancel it and raise the error."""
        reader = asyncio.current_task()
        if reader is None:
            raise RuntimeError("only a task can wait")
        cancels = reader.cancelling()
        self._expired = False
        self._deadline = self._loop.time() + seconds
        self._reader = reader
        if self._timer is None or self._timer.when() > self._deadline:
            self._set_timer(self._deadline)
        try:
            return await awaitable
        except asyncio.CancelledError:
            if self._expired and reader.uncancel() <= cancels:
                raise self._error(seconds) from None
            raise
        finally:
            self._reader = None

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer:
            self._timer.cancel()

    def _set_timer(self, when: float) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._reader is None:
            return
        if self._loop.time() < self._deadline:
            self._set_timer(self._deadline)
        else:
            self._expired = True
            self._reader.cancel()
