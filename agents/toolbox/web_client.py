"""The client that fetches a page from the public internet. It connects only to IP addresses that were checked.

Text of a server is returned only in the page, never in an error, because models treat errors as Parley's own text.
"""

from __future__ import annotations

import asyncio
import re
import socket
import sys
import zlib
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from http import client as http_client
from importlib import import_module
from ipaddress import ip_address
from typing import TYPE_CHECKING

from yarl import URL

from agents.errors import ToolError
from agents.toolbox.public_addresses import Address, is_public
from agents.web_addresses import parse_address

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import AbstractResolver

MAX_REDIRECTS = 5
MAX_BYTES = 2_000_000
# PDF files may be larger, because they cannot be read in part and most of their bytes are not text.
MAX_PDF_BYTES = 20_000_000
PDF = b"%PDF-"
TOTAL_SECONDS = 20.0

_REDIRECTS = {301, 302, 303, 307, 308}
_HEADERS = {
    "User-Agent": "Parley web_fetch",
    "Accept": "text/html, text/markdown, text/plain, application/json;q=0.9, */*;q=0.5",
    # Only encodings that can be unpacked step by step, up to a limit.
    "Accept-Encoding": "gzip",
}


@dataclass(frozen=True, slots=True)
class Policy:
    """The IP addresses and ports to which requests may be sent. If `resolver` is None, the system resolves names."""

    allows: Callable[[Address], bool] = is_public
    ports: Collection[int] = (80, 443, 8080, 8443)
    resolver: AbstractResolver | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """The answer of a server, after redirects. `complete` is False if the body was cut at its limit."""

    url: str
    content_type: str
    charset: str | None
    body: bytes
    complete: bool


# Called before each request with the address, and with the address that redirects to it or None. Raises ToolError if
# the address may not be opened.
Judge = Callable[[URL, URL | None], Awaitable[None]]


class Gate:
    """A check of an IP address when its socket is made, so that exactly the checked address is connected to.

    Names, redirects, unusual notations of addresses and name servers that change their answers cannot avoid it.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.refused = False

    def __call__(self, info: tuple[int, int, int, str, tuple[str | int, ...]]) -> socket.socket:
        family, kind, protocol, _, address = info
        if not self._policy.allows(ip_address(str(address[0]))):
            self.refused = True
            raise PermissionError(f"{address[0]} may not be connected to")
        return socket.socket(family=family, type=kind, proto=protocol)


async def _anything(_target: URL, _before: URL | None) -> None:
    """Allow all addresses."""


async def load_client() -> None:
    """Import aiohttp in a thread. This is done late: it takes 10 MB and 250 ms, and many servers never need it."""
    if "aiohttp" not in sys.modules:
        await asyncio.to_thread(import_module, "aiohttp")


async def fetch(url: str, policy: Policy, judge: Judge = _anything) -> Page:
    """Return the page, after at most MAX_REDIRECTS redirects. Raise ToolError with a message for the model."""
    try:
        async with asyncio.timeout(TOTAL_SECONDS):
            return await _follow(url, policy, judge)
    except TimeoutError as error:
        raise ToolError(f"{url} did not answer within {TOTAL_SECONDS:g} seconds.") from error


async def _follow(url: str, policy: Policy, judge: Judge) -> Page:
    await load_client()
    import aiohttp

    gate = Gate(policy)
    target, before = _parse_address(url, policy), None
    async with _session(policy, gate) as session:
        for _ in range(MAX_REDIRECTS + 1):
            await judge(target, before)
            name = str(target) if before is None else f"{url}, which redirects to {target.host},"
            try:
                answer = await _request(session, target, name)
            except (aiohttp.ClientError, OSError, ValueError) as error:
                raise ToolError(_words(target, name, error, gate.refused)) from error
            if isinstance(answer, Page):
                return answer
            target, before = _parse_address(answer, policy), target
    raise ToolError(f"{url} redirects more than {MAX_REDIRECTS} times.")


def _session(policy: Policy, gate: Gate) -> aiohttp.ClientSession:
    """Return a client session without proxies of the environment, cookies, netrc credentials or reused connections."""
    import aiohttp

    connector = aiohttp.TCPConnector(
        resolver=policy.resolver or aiohttp.ThreadedResolver(),
        socket_factory=gate,
        force_close=True,
        use_dns_cache=False,
    )
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=TOTAL_SECONDS / 2),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        headers=_HEADERS,
    )


def _parse_address(url: str | URL, policy: Policy) -> URL:
    name = url if isinstance(url, str) else "what the page redirects to"
    try:
        target = url if isinstance(url, URL) else parse_address(url)
        port = target.port
    except ValueError as error:
        raise ToolError(f"Not a web address: {name}") from error
    if target.scheme not in ("http", "https") or not target.host:
        raise ToolError(f"Only http:// and https:// addresses can be fetched, not {name}")
    if target.raw_user is not None or target.raw_password is not None:
        raise ToolError("Addresses with a user name or password are not fetched.")
    if port not in policy.ports:
        raise ToolError(f"Port {port} is not allowed. Allowed ports: {', '.join(map(str, sorted(policy.ports)))}.")
    return target


async def _request(session: aiohttp.ClientSession, target: URL, name: str) -> Page | URL:
    async with session.get(target, allow_redirects=False) as response:
        location = response.headers.get("Location")
        if response.status in _REDIRECTS and location:
            try:
                return target.join(parse_address(location))
            except ValueError as error:
                raise ValueError("it redirects to an invalid address") from error
        if response.status >= 400:
            reason = http_client.responses.get(response.status, "")
            raise ToolError(f"{name} answered {f'{response.status} {reason}'.rstrip()}.")
        body, complete = await _body(response)
        declared = response.headers.get("Content-Type")
        return Page(str(target), response.content_type if declared else "", response.charset, body, complete)


async def _body(response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    """Return the body, and whether it is complete. The limit applies to the unpacked bytes, and nothing beyond it is
    unpacked.
    """
    unpack = unpacker(response.headers.get("Content-Encoding", "identity").strip().lower())
    body, most = bytearray(), MAX_BYTES
    async for chunk in response.content.iter_any():
        body += unpack(chunk, most + 1 - len(body))
        if most == MAX_BYTES and body.startswith(PDF):
            most = MAX_PDF_BYTES
            body += unpack(b"", most + 1 - len(body))
        if len(body) > most:
            return bytes(body[:most]), False
    return bytes(body), True


def unpacker(encoding: str) -> Callable[[bytes, int], bytes]:
    """Return a function that unpacks the next bytes of a body, up to a limit. Raise ToolError, as the function does.

    `b""` as the next bytes continues after the limit.
    """
    if encoding in ("identity", ""):
        return lambda chunk, limit: chunk[:limit]
    if encoding not in ("gzip", "x-gzip", "deflate"):
        name = encoding if re.fullmatch(r"[a-z0-9-]{1,10}", encoding) else "unknown"
        raise ToolError(f"The server's answer has an encoding that was not requested ({name}).")
    stream = zlib.decompressobj(zlib.MAX_WBITS | 32)  # 32: gzip or zlib, by the header

    def unpack(chunk: bytes, limit: int) -> bytes:
        try:
            return stream.decompress(stream.unconsumed_tail + chunk, limit)
        except zlib.error as error:
            raise ToolError("The server's answer cannot be decompressed.") from error

    return unpack


def _words(target: URL, name: str, error: Exception, refused: bool) -> str:
    import aiohttp

    if refused:
        return f"{target.host} is not on the public internet; only public addresses can be fetched."
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"The host {target.host} is not known."
    if isinstance(error, TimeoutError):
        return f"{target.host} did not answer in time."
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"{name} cannot be fetched: {error.os_error.strerror or 'the connection failed'}"
    # These errors quote the answer, so their text is not used.
    about_answer = isinstance(
        error, aiohttp.ClientResponseError | aiohttp.ClientPayloadError | aiohttp.ServerTimeoutError
    )
    reason = "its answer is not valid" if about_answer else str(error) or type(error).__name__
    return f"{name} cannot be fetched: {reason}"
