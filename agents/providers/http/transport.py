"""How the SDKs reach an endpoint: connection limits, timeouts, and when they may wait by themselves."""

from __future__ import annotations

import functools
import ssl
from collections.abc import AsyncGenerator, Callable
from typing import Any, TypedDict

import httpx2

from agents.providers.http.errors import retry_after

# The SDKs wait up to this long by themselves when a server asks for it. The loop decides about longer waits
# (`agents.loop`), and users see those.
LONGEST_SDK_WAIT = 10.0
# The SDKs' own limit of 1,000 makes stream 1,001 wait without an error. A session has one stream at a time.
MAX_CONNECTIONS = 10_000
# Long enough to live through a tool round, so that the next one finds its connection open.
KEEP_ALIVE = 60.0


class ClientOptions(TypedDict):
    """Arguments of the SDKs' aiohttp clients."""

    verify: ssl.SSLContext
    limits: httpx2.Limits
    timeout: httpx2.Timeout
    event_hooks: dict[str, list[Callable[..., Any]]]


def client_options(connect_timeout: float) -> ClientOptions:
    """Return the options of the connections.

    They have no read timeout: `ReadTimeout` watches for silence while a response streams. It costs less per chunk and
    knows whether the first word has come.
    """
    return {
        "verify": _certificates(),
        "limits": httpx2.Limits(
            max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS, keepalive_expiry=KEEP_ALIVE
        ),
        "timeout": httpx2.Timeout(None, connect=connect_timeout),
        "event_hooks": {"response": [_refuse_long_waits]},
    }


def is_long_wait(seconds: float | None) -> bool:
    """Whether a server asks for more than the SDKs may wait by themselves."""
    return seconds is not None and seconds > LONGEST_SDK_WAIT


def body_of(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """Iterate over the bytes as they come; decompression is a layer per chunk that most streams do not need."""
    if response.headers.get("content-encoding", "identity") == "identity":
        return response.aiter_raw()
    return response.aiter_bytes()


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Read the trusted certificates once: it takes 40 ms of the event loop."""
    return httpx2.create_ssl_context()


async def _refuse_long_waits(response: httpx2.Response) -> None:
    """Keep the SDK from sleeping during a long Retry-After, users would not see why nothing happens (RUN-10)."""
    if is_long_wait(retry_after(response.headers)):
        response.headers["x-should-retry"] = "false"
