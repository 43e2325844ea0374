"""HTTP connections to MCP servers. As with web_fetch, each IP address is checked when its socket is made."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import httpx2
import mcp_types as types
from mcp.client.streamable_http import streamable_http_client
from yarl import URL

from agents.errors import ToolError
from agents.i18n import gettext as _
from agents.mcp.config import ServerConfig
from agents.mcp.connection import Streams
from agents.mcp.explaining import CUT_SHORT, SESSION, SIGN_IN, TOO_LONG, failed, reason
from agents.mcp.sign_in import SignInEnded, SignInFailed
from agents.mcp.unstorable import StorableJson
from agents.messages import Json
from agents.toolbox.address_policy import is_allowed
from agents.toolbox.public_addresses import is_public
from agents.toolbox.web_client import Gate, Policy, unpacker

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 10.0
# The most bytes of one message of a server.
MAX_BYTES = 4_000_000
# Headers of an answer that no longer apply when it is unpacked.
PACKING = ("content-encoding", "content-length")
HANDSHAKE = ("initialize", "notifications/initialized")
# The words with which servers of the TypeScript SDK, and others, answer 400 in place of 404 if they lack a session.
# https://github.com/punkpeye/fastmcp/issues/121
NO_SESSION = re.compile(r"(?i)session|not initialized")


@asynccontextmanager
async def connect(
    server: ServerConfig, headers: Mapping[str, str], auth: httpx2.Auth | None = None
) -> AsyncIterator[Streams]:
    """Connect to a server's address. The connections are closed at the end of the context."""
    assert server.url is not None  # noqa: S101  # agents.mcp.config.problems
    transport = _Checked(server, refuses_401=auth is None)
    client = _Client(transport=transport, headers=dict(headers), auth=auth, trust_env=False, timeout=None)
    async with client, streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_BYTES) as streams:
        yield streams


def open_client(server: ServerConfig) -> httpx2.AsyncClient:
    """Return a client for requests to the addresses that a server names. They must use https or be internal hosts."""
    return httpx2.AsyncClient(transport=_Checked(server, https_only=True), trust_env=False, timeout=None)


def is_internal(server: ServerConfig, host: str) -> bool:
    """Return whether a host may have an IP address that is not public."""
    return bool(server.internal_hosts) and is_allowed(host, server.internal_hosts)


class _Client(httpx2.AsyncClient):
    """A client that answers a failed request with an error of the protocol.

    The SDK sends all requests of a connection in one task group. An exception would end all of them.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            answer = await super().send(request, **options)
            if await _is_of_ended_session(answer, request):
                text = failed(_("it has ended the session"), SESSION)
            elif await _has_only_status(answer, request):
                phrase = f" ({answer.reason_phrase})" if answer.reason_phrase else ""
                status = f"{answer.status_code}{phrase}"
                text = failed(_("it answered with the HTTP status {status}", status=status))
            else:
                return answer
        except Exception as error:
            # Without a handshake, the connection cannot be used. The SDK handles failures of other HTTP methods.
            if request.method != "POST" or (await _message_of(request)).get("method") in HANDSHAKE:
                raise
            text = _text_of(error)
        error_data = {"code": types.INTERNAL_ERROR, "message": text}
        message_id = (await _message_of(request)).get("id")
        return httpx2.Response(502, request=request, json={"jsonrpc": "2.0", "id": message_id, "error": error_data})


async def _message_of(request: httpx2.Request) -> Json:
    message: Json = json.loads(await request.aread())
    return message


async def _is_of_ended_session(answer: httpx2.Response, request: httpx2.Request) -> bool:
    """Return whether a server has refused a message, with 404 or 400, because it does not have its session.

    An error with the id of the message may come from its execution, and an HTML page from a gateway in front of it.
    """
    if answer.status_code not in (404, 400) or request.method != "POST" or "mcp-session-id" not in request.headers:
        return False
    text = (await answer.aread()).decode(errors="replace")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, dict) and found.get("id") == (await _message_of(request)).get("id"):
        return False
    is_page = text.lstrip().startswith("<")
    return answer.status_code == 404 or (not is_page and NO_SESSION.search(text) is not None)


async def _has_only_status(answer: httpx2.Response, request: httpx2.Request) -> bool:
    """Return whether a server has answered a message with the status of an error, and with no error of the protocol.

    The SDK does not report the status. It handles 404 itself.
    """
    if answer.status_code < 400 or answer.status_code == 404 or request.method != "POST":
        return False
    if (await _message_of(request)).get("method") in HANDSHAKE:
        return False
    try:
        found = json.loads(await answer.aread())
    except ValueError:
        return True
    return not isinstance(found, dict) or not isinstance(found.get("error"), dict)


def _text_of(error: Exception) -> str:
    match error:
        case SignInEnded() | SignInFailed():
            return failed(reason(error), SIGN_IN)
        case httpx2.HTTPError():
            return failed(reason(error))
    logger.error("A request to an MCP server could not be sent", exc_info=error)
    return failed(_("it could not be sent"))


class _Checked(httpx2.AsyncBaseTransport):
    """A transport that connects only to public IP addresses, and for internal hosts to any address.

    With `https_only`, addresses without https must be internal hosts. With `refuses_401`, the status 401 raises an
    error that explains it; otherwise the caller handles that status.
    """

    def __init__(self, server: ServerConfig, *, https_only: bool = False, refuses_401: bool = False) -> None:
        self._server = server
        self._https_only = https_only
        self._refuses_401 = refuses_401
        # The key is whether the host is internal.
        self._opened: dict[bool, tuple[Gate, aiohttp.ClientSession]] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {**request.headers, "accept-encoding": "identity"}
        body = await request.aread()
        url = URL(str(request.url))
        within = is_internal(self._server, url.raw_host or "")
        if self._https_only and not within and url.scheme != "https":
            raise httpx2.ConnectError(_("the address of {host} does not use https", host=url.raw_host), request=request)
        gate, session = self._session(is_within=within)
        try:
            answer = await session.request(
                request.method, url, headers=headers, data=body or None, allow_redirects=False
            )
        except (aiohttp.ClientError, OSError) as error:
            refused = _("its address is not public; list the host in internal_hosts to allow it")
            logger.info("The request to %s failed: %s", url.origin(), error)
            raise httpx2.ConnectError(refused if gate.refused else _explain(error, url), request=request) from error
        if answer.status == 401 and self._refuses_401:
            answer.close()
            raise SignInFailed(_("it requires a sign-in (status 401)"))
        headers_for_sdk = [each for each in answer.headers.items() if each[0].lower() not in PACKING]
        return httpx2.Response(answer.status, headers=headers_for_sdk, stream=_Body(answer))

    async def aclose(self) -> None:
        for _gate, session in self._opened.values():
            await session.close()

    def _session(self, *, is_within: bool) -> tuple[Gate, aiohttp.ClientSession]:
        if is_within not in self._opened:
            gate = Gate(Policy(allows=(lambda address: True) if is_within else is_public))
            connector = aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver(), socket_factory=gate, limit=100)
            session = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
            )
            self._opened[is_within] = gate, session
        return self._opened[is_within]


def _explain(error: aiohttp.ClientError | OSError, url: URL) -> str:
    """Describe for users why a server did not answer. The details are in the log only."""
    host = url.raw_host if url.is_default_port() else url.raw_authority
    match error:
        case aiohttp.ClientConnectorDNSError():
            return _("no server was found at {host}", host=host)
        case aiohttp.ClientConnectorCertificateError():
            return _("the certificate of {host} is not valid", host=host)
        case aiohttp.ClientSSLError():
            return _("{host} did not accept a secure connection (TLS)", host=host)
        case TimeoutError():
            return _("{host} did not answer in time", host=host)
        case ConnectionRefusedError() | aiohttp.ClientConnectorError(os_error=ConnectionRefusedError()):
            return _("{host} refused the connection", host=host)
        case aiohttp.ClientConnectorError():
            return _("{host} can’t be reached", host=host)
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError() | ConnectionError():
            return _("{host} closed the connection before it answered", host=host)
    return _("the answer of {host} is not valid", host=host)


class _BodyError(httpx2.ReadError, httpx2.StreamError):
    """The body of an answer cannot be used. The SDK reports a StreamError as the error of its request. For any other
    error, it would end the connection, with all its requests and without the reason."""


class _Body(httpx2.AsyncByteStream):
    """The body of an answer. Unless it is a stream of events, it may have MAX_BYTES at most. Errors are no streams.

    Some servers compress it, although the request asks for plain text. Then MAX_BYTES applies to the unpacked bytes,
    and little more is unpacked, because a few bytes could fill the memory.
    """

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        is_stream = answer.content_type == "text/event-stream" and answer.status < 400
        self._room = None if is_stream else MAX_BYTES

    async def __aiter__(self) -> AsyncIterator[bytes]:
        json = StorableJson()
        async for chunk in self._chunks():
            if storable := json.add(chunk):
                yield storable
        if rest := json.end():
            yield rest

    async def _chunks(self) -> AsyncIterator[bytes]:
        try:
            unpack = unpacker(self._answer.headers.get("Content-Encoding", "").strip().lower())
            async for packed in self._answer.content.iter_any():
                chunk = unpack(packed, MAX_BYTES)
                while chunk:
                    if self._room is not None:
                        self._room -= len(chunk)
                        if self._room < 0:
                            raise _BodyError(f"{TOO_LONG} {MAX_BYTES:,} bytes")
                    yield chunk
                    chunk = unpack(b"", MAX_BYTES)
        except ToolError as error:
            raise _BodyError(str(error)) from error
        except (aiohttp.ClientError, OSError) as error:
            raise _BodyError(CUT_SHORT) from error

    async def aclose(self) -> None:
        self._answer.close()
