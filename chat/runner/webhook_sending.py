"""Send one request to a webhook's address: to public addresses, and to internal hosts that the operator allows.

An address is checked when its socket is created, like those of `web_fetch`. Redirects are not followed. Only the status
of an answer is read, so that no user can see the content of a host's answer.
"""

from __future__ import annotations

import asyncio
import time
from datetime import datetime

from asgiref.sync import async_to_sync
from django.conf import settings
from django.utils import timezone
from yarl import URL

from agents.toolbox.address_policy import is_allowed
from agents.toolbox.public_addresses import is_public
from agents.toolbox.web_client import Gate, Policy, load_client
from chat.models import WebhookDelivery
from chat.overrides.postgres.lending import return_connection
from chat.security.webhook_signature import headers_for
from chat.services.webhooks import delivering
from chat.services.webhooks.delivering import Answer, Taken

Problem = WebhookDelivery.Problem
# Seconds for the whole request.
SECONDS = 10.0
_HEADERS = {"Content-Type": "application/json", "User-Agent": "Parley webhooks"}


def send_now(taken: Taken) -> Answer:
    """Send a delivery that a user requests, and record the answer."""
    return_connection()
    answer: Answer = async_to_sync(send)(taken, timezone.now())
    delivering.finish(taken, answer, timezone.now())
    return answer


async def send(taken: Taken, at: datetime) -> Answer:
    """Send a delivery, signed with the time `at`. Never raise for an address that fails."""
    if not taken.secrets:
        return Answer(None, Problem.SECRET, 0)
    await load_client()
    signature = headers_for(taken.secrets, taken.id, int(at.timestamp()), taken.body)
    began = time.monotonic()
    try:
        async with asyncio.timeout(SECONDS):
            status, problem = await _request(taken, {**_HEADERS, **signature})
    except TimeoutError:
        status, problem = None, Problem.TIMEOUT
    return Answer(status, problem, round((time.monotonic() - began) * 1000))


async def _request(taken: Taken, headers: dict[str, str]) -> tuple[int | None, str]:
    import aiohttp

    internal = settings.WEBHOOK_INTERNAL_HOSTS
    is_internal = bool(internal) and is_allowed(URL(taken.url).raw_host or "", internal)
    if not is_internal and URL(taken.url).scheme != "https":  # the operator no longer allows the host
        return None, Problem.REFUSED
    gate = Gate(Policy(allows=(lambda _address: True) if is_internal else is_public))
    connector = aiohttp.TCPConnector(
        resolver=aiohttp.ThreadedResolver(), socket_factory=gate, force_close=True, use_dns_cache=False
    )
    try:
        async with (
            aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                timeout=aiohttp.ClientTimeout(total=None),
            ) as session,
            session.post(taken.url, data=taken.body, headers=headers, allow_redirects=False) as response,
        ):
            return response.status, _problem_of(response.status)
    except (aiohttp.ClientError, OSError, ValueError):
        return None, Problem.REFUSED if gate.refused else Problem.CONNECTION


def _problem_of(status: int) -> str:
    if 200 <= status < 300:
        return Problem.NONE
    return Problem.REDIRECT if 300 <= status < 400 else Problem.STATUS
