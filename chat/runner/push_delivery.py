"""Deliver push messages: by HTTPS, to public addresses only, a few at a time, with repetition.

A browser says which address its messages go to, so a user could name any. Each is checked when its socket is made, as
those of `web_fetch`; nothing of an answer but its status is read.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Sequence
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
# Which certificates are accepted. True: those of public authorities.
TLS: ssl.SSLContext | bool = True
AT_ONCE = 20
# For the whole request: a service that sends a byte now and then would keep its place for hours.
SECONDS = 10.0
# Seconds before each repetition.
PAUSES = (1.0, 10.0)
LONGEST_PAUSE = 60.0
# Stands for a status where an address is not connected to.
REFUSED = 403


class Result(Enum):
    """What came of a message. GONE: the service does not know the browser any more."""

    DELIVERED = "delivered"
    FAILED = "failed"
    GONE = "gone"


async def deliver(pushes: Sequence[Push], *, patient: bool = True) -> list[Result]:
    """Deliver messages; return what came of each. Never raises for a service that fails.

    A `patient` caller waits until a service that has failed, or takes no more for now, was asked again.
    """
    await load_client()
    import aiohttp

    pauses = PAUSES if patient else ()
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
        return await asyncio.gather(*(_deliver(session, places, push.request, pauses) for push in pushes))


async def _deliver(
    session: aiohttp.ClientSession, places: asyncio.Semaphore, request: PushRequest, pauses: Sequence[float]
) -> Result:
    host, why = URL(request.url).host, ""
    for pause in (*pauses, None):
        async with places:  # the time for a request begins when it has one
            status, wait, why = await _send(session, request)
        if 200 <= status < 300:
            return Result.DELIVERED
        if status in (404, 410):
            return Result.GONE
        if pause is None or (status and status != 429 and status < 500):
            break
        await asyncio.sleep(min(LONGEST_PAUSE, max(pause, wait)))
    logger.warning("The push service %s has not taken a message: %s", host, why)
    return Result.FAILED


async def _send(session: aiohttp.ClientSession, request: PushRequest) -> tuple[int, float, str]:
    """Return the status, 0 without an answer; how many seconds the service asks to wait; and why it failed."""
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
