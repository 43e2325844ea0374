"""HTTP to an MCP server, by the address rules of web_fetch: each address is checked when its socket is made."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
import httpx2
from mcp.client.streamable_http import streamable_http_client
from yarl import URL

from agents.mcp.config import ServerConfig
from agents.mcp.connection import Streams
from agents.toolbox.address_policy import is_allowed
from agents.toolbox.public_addresses import is_public
from agents.toolbox.web_client import Gate, Policy

CONNECT_SECONDS = 10.0
# A message of a server, or an answer that is one message.
MAX_BYTES = 4_000_000


@asynccontextmanager
async def connect(server: ServerConfig, headers: Mapping[str, str]) -> AsyncIterator[Streams]:
    """Connect to a server's address. Closes everything at the end."""
    assert server.url is not None  # noqa: S101  # agents.mcp.config.problems
    host = URL(server.url).raw_host or ""
    is_internal = bool(server.internal_hosts) and is_allowed(host, server.internal_hosts)
    policy = Policy(allows=(lambda address: True) if is_internal else is_public)
    client = httpx2.AsyncClient(
        transport=_Checked(policy),
        headers=dict(headers),
        trust_env=False,
        timeout=None,
    )
    async with client, streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_BYTES) as streams:
        yield streams


class _Checked(httpx2.AsyncBaseTransport):
    """Sends requests over connections to allowed addresses only."""

    def __init__(self, policy: Policy) -> None:
        self._gate = Gate(policy)
        connector = aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver(), socket_factory=self._gate, limit=100)
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {**request.headers, "accept-encoding": "identity"}
        body = await request.aread()
        try:
            answer = await self._session.request(
                request.method, URL(str(request.url)), headers=headers, data=body or None, allow_redirects=False
            )
        except (aiohttp.ClientError, OSError) as error:
            refused = "its address is not public; list the host in internal_hosts to allow it"
            raise httpx2.ConnectError(refused if self._gate.refused else str(error), request=request) from error
        return httpx2.Response(answer.status, headers=list(answer.headers.items()), stream=_Body(answer))

    async def aclose(self) -> None:
        await self._session.close()


class _Body(httpx2.AsyncByteStream):
    """The body of an answer; of one that is no stream of events, at most MAX_BYTES."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self._room = None if answer.content_type == "text/event-stream" else MAX_BYTES

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._answer.content.iter_any():
                if self._room is not None:
                    self._room -= len(chunk)
                    if self._room < 0:
                        raise httpx2.ReadError(f"the answer has more than {MAX_BYTES:,} bytes")
                yield chunk
        except aiohttp.ClientError as error:
            raise httpx2.ReadError(str(error)) from error

    async def aclose(self) -> None:
        self._answer.close()
