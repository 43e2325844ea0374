"""The origin of a request: interface, client address and API token."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.http import HttpRequest

# The longest text of an IPv6 address with a scope. Longer texts are cut, because a proxy may pass on anything.
MAX_ADDRESS_LENGTH = 64


class Interface(StrEnum):
    """The interfaces of Parley."""

    PAGE = "page"
    API = "api"
    SOCKET = "socket"
    ADMIN = "admin"
    COMMAND = "command"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Origin:
    """The interface and the client's address. `token_id` is the API token of the request or socket, if it has one."""

    interface: Interface
    address: str = ""
    token_id: int | None = None


# Code without a request runs in a management command, unless it sets another origin.
_WITHOUT_REQUEST = Origin(Interface.COMMAND)
_origin: ContextVar[Origin] = ContextVar("origin", default=_WITHOUT_REQUEST)


def current_origin() -> Origin:
    """Return the origin of the request that is being handled."""
    return _origin.get()


@contextmanager
def using_origin(origin: Origin) -> Iterator[None]:
    """Set the origin for a block."""
    token = _origin.set(origin)
    try:
        yield
    finally:
        _origin.reset(token)


def note_token(token_id: int) -> None:
    """Add the token of the current request to its origin."""
    _origin.set(replace(_origin.get(), token_id=token_id))


def origin_of(request: HttpRequest) -> Origin:
    """Return the origin of a web request."""
    path = request.path_info
    if path.startswith("/admin/"):
        interface = Interface.ADMIN
    else:
        interface = Interface.API if path.startswith("/api/") else Interface.PAGE
    return Origin(interface, address_of(request))


def origin_of_socket(scope: Mapping[str, Any], token_id: int | None = None) -> Origin:
    """Return the origin of the frames of a WebSocket's client."""
    lines = [value for name, value in scope.get("headers") or () if name == b"x-forwarded-for"]
    peer = (scope.get("client") or [""])[0]
    return Origin(Interface.SOCKET, _client_address(b",".join(lines).decode("latin-1"), peer), token_id)


def address_of(request: HttpRequest | None) -> str:
    """Return the client's address. With HTTPS=1, it is the one that the first of the PROXIES added."""
    meta = request.META if request else {}
    return _client_address(meta.get("HTTP_X_FORWARDED_FOR", ""), str(meta.get("REMOTE_ADDR", "")))


def _client_address(forwarded: str, peer: str) -> str:
    if not settings.HTTPS:
        return peer[:MAX_ADDRESS_LENGTH]
    # Only the last entries are those of the proxies; the client can write anything before them.
    by_proxies = forwarded.rsplit(",", settings.PROXIES)[-settings.PROXIES :]
    return (_without_port(by_proxies[0].strip()) or peer)[:MAX_ADDRESS_LENGTH]


def _without_port(entry: str) -> str:
    """Return the address in `192.0.2.7:443`, `[2001:db8::1]:443` or `2001:db8::1`.

    Some load balancers add the port, which differs for each connection of a client.
    """
    if entry.startswith("["):
        return entry[1:].partition("]")[0]
    return entry.partition(":")[0] if entry.count(":") == 1 else entry


def network_of(address: str) -> str:
    """Return the network that counts as one client: an IPv4 address, or the /64 network of an IPv6 address."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:  # a Unix socket has no address
        return address
    if isinstance(ip, ipaddress.IPv6Address):
        return str(ip.ipv4_mapped or ipaddress.ip_network((ip, 64), strict=False))
    return str(ip)
