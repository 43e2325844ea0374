"""Deliver push messages by HTTPS, to public addresses only, a few at a time, and repeat those that fail.

The address of a push service comes from the browser, so a user could give any address. Each address is checked when its
socket is created, like those of `web_fetch`. Of an answer, only its status is read.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from yarl import URL

from agents.toolbox.web_client import Gate, Policy, load_client
from chat.runner.push_notices import Push
from chat.security.web_push import PushRequest
from chat.services.people.push import PORTS

if TYPE_CHECKING:
    import aiohttp

logger = logging.getLogger(__name__)

POLICY = Policy(ports=PORTS)
# The certificates that are accepted. True: those of public authorities.
TLS: ssl.SSLContext | bool = True
AT_ONCE = 20
# Seconds for the whole request. Without this limit, a service that sends a byte from time to time would keep a place.
SECONDS = 10.0
# Seconds before each repetition.
PAUSES = (1.0, 10.0)
MAX_PAUSE = 60.0
# The statuses of services that limit the rate. Microsoft's service uses 406.
RATE_LIMITED = (406, 429)
# The status that is used for an address to which no connection is made.
REFUSED = 403


class Result(Enum):
    """The outcome of a message.

    GONE: the push service does not know the browser any more. DROPPED: the message may no longer be sent.
    """

    DELIVERED = "delivered"
    FAILED = "failed"
    GONE = "gone"
    DROPPED = "dropped"


# Returns whether a message may be sent again, because its user may lose access during a pause.
MayRepeat = Callable[[Push], Awaitable[bool]]


async def deliver(pushes: Sequence[Push], may_repeat: MayRepeat | None = None) -> list[Result]:
    """Deliver messages and return the outcome of each, in order. Never raise for a push service that fails.

    With `may_repeat`, repeat a request after a pause if the service fails or limits the rate. Otherwise try only once.
    """
    await load_client()
    import aiohttp

    gate = Gate(POLICY)
    connector = aiohttp.TCPConnector(
        resolver=POLICY.resolver or aiohttp.ThreadedResolver(),
        socket_factory=gate,
        force_close=True,
        use_dns_cache=False,
        ssl=TLS,
        limit=AT_ONCE,
    )
    places = asyncio.Semaphore(AT_ONCE)
    async with aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        timeout=aiohttp.ClientTimeout(total=SECONDS),
    ) as session:
        return await asyncio.gather(*(_deliver(session, places, push, may_repeat) for push in pushes))


async def _deliver(
    session: aiohttp.ClientSession, places: asyncio.Semaphore, push: Push, may_repeat: MayRepeat | None
) -> Result:
    host, why = URL(push.request.url).host, ""
    for pause in (*(PAUSES if may_repeat else ()), None):
        async with places:  # a request's time limit starts only when it has a place
            status, wait, why = await _send(session, push.request)
        if 200 <= status < 300:
            return Result.DELIVERED
        if status in (404, 410):
            return Result.GONE
        if pause is None or (status and status not in RATE_LIMITED and status < 500):
            break
        await asyncio.sleep(min(MAX_PAUSE, max(pause, wait)))
        if may_repeat and not await may_repeat(push):
            return Result.DROPPED
    logger.warning("The push service %s did not accept a notification: %s", host, why)
    return Result.FAILED


async def _send(session: aiohttp.ClientSession, request: PushRequest) -> tuple[int, float, str]:
    """Return the status (0 without an answer), the seconds to wait that the service requests, and why it failed."""
    import aiohttp

    try:
        async with session.post(
            request.url, data=request.body, headers=request.headers, allow_redirects=False
        ) as response:
            wait = response.headers.get("Retry-After", "")
            return response.status, float(wait) if wait.isdigit() else 0.0, f"status {response.status}"
    except (aiohttp.ClientError, OSError, ValueError) as error:
        if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, PermissionError):
            return REFUSED, 0.0, "its address is not on the public internet"
        return 0, 0.0, type(error).__name__
