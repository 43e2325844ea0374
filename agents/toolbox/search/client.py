"""The client of search services, with limits of time and size.

Errors never contain text of the service, because models treat errors as Parley's own text.
"""

from __future__ import annotations

import asyncio
import json

from agents.errors import ToolError
from agents.toolbox.address_policy import is_allowed
from agents.toolbox.public_addresses import is_public
from agents.toolbox.search.config import SearchConfig
from agents.toolbox.search.services import Result, Search, SearchRequest, request_of, results_of
from agents.toolbox.web_client import Gate, Policy, load_client

MAX_BYTES = 2_000_000
INSTEAD = "Continue without searching, or tell the user."


async def search_web(search: Search, config: SearchConfig, key: str) -> list[Result]:
    """Return the results of a search. Raise ToolError with a message for the model."""
    await load_client()
    import aiohttp

    request = request_of(search, config, key)
    is_internal = bool(config.internal_hosts) and is_allowed(request.url.raw_host or "", config.internal_hosts)
    gate = Gate(Policy(allows=(lambda address: True) if is_internal else is_public))
    try:
        async with asyncio.timeout(config.timeout):
            answer = await _answer(request, gate)
        return results_of(json.loads(answer), config)
    except TimeoutError as error:
        raise ToolError(f"The search service did not answer within {config.timeout:g} seconds. {INSTEAD}") from error
    except (aiohttp.ClientError, OSError) as error:
        why = (
            "does not have a public address, and its host is not in internal_hosts"
            if gate.refused
            else "cannot be reached"
        )
        raise ToolError(f"The search service {why}. {INSTEAD}") from error
    except (ValueError, RecursionError) as error:
        raise ToolError(f"The search service sent an invalid answer. {INSTEAD}") from error


async def _answer(request: SearchRequest, gate: Gate) -> bytes:
    import aiohttp

    connector = aiohttp.TCPConnector(
        resolver=aiohttp.ThreadedResolver(), socket_factory=gate, force_close=True, use_dns_cache=False
    )
    session = aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, timeout=aiohttp.ClientTimeout(None)
    )
    method = "GET" if request.body is None else "POST"
    async with (
        session,
        session.request(
            method, request.url, headers=request.headers, json=request.body, allow_redirects=False
        ) as response,
    ):
        if response.status != 200:
            raise ToolError(_refusal(response.status))
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > MAX_BYTES:
                raise ToolError(f"The search service sent more than {MAX_BYTES:,} bytes. {INSTEAD}")
        return bytes(body)


def _refusal(status: int) -> str:
    match status:
        case 401 | 403:
            why = "refused the request: an administrator must check its API key and settings"
        case 402 | 432 | 433:
            why = "has no searches left: an administrator must check its plan"
        case 429:
            why = "does not accept more searches for now: try again later"
        case 400 | 422:
            why = "does not accept this query: search for other words"
        case _:
            why = f"failed with the status {status}"
    return f"The search service {why}. {INSTEAD}"
