"""A check of whether an IP address belongs to the public internet. All others, also unknown ones, are refused."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

Address = IPv4Address | IPv6Address

# https://www.iana.org/assignments/iana-ipv4-special-registry
_NOT_PUBLIC_4 = [
    ip_network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT; cloud metadata at 100.100.100.200
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's host services, a public address that only leads inside
        "169.254.0.0/16",  # link-local; cloud metadata at 169.254.169.254
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments; cloud metadata at 192.0.0.192
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
]
# https://www.iana.org/assignments/iana-ipv6-special-registry: global unicast except for these
_GLOBAL_6 = ip_network("2000::/3")
_NOT_PUBLIC_6 = [
    ip_network(network)
    for network in (
        "2001::/23",  # protocol assignments, Teredo, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: leads to the IPv4 address within
        "3fff::/20",  # documentation
    )
]
_MAPPED = ip_network("::ffff:0:0/96")
_NAT64 = ip_network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Return whether the address is on the public internet. If it contains an IPv4 address, check that one."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    plain = IPv6Address(int(address))  # without a zone
    if plain in _MAPPED or plain in _NAT64:
        return is_public(IPv4Address(int(plain) & 0xFFFFFFFF))
    return plain in _GLOBAL_6 and not any(plain in network for network in _NOT_PUBLIC_6)


# The last part of a host that browsers read as an IPv4 address. No domain name ends in such a part.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.IGNORECASE)


def is_misread(host: str) -> bool:
    """Return whether a host is an IP address in a form that programs read differently, or not at all.

    Examples are 127.1, 0x7f.1 and 010.0.0.1, which is 8.0.0.1 for some programs and 10.0.0.1 for others.
    """
    name = _bare(host)
    try:
        ip_address(name)
    except ValueError:
        return ":" in name or _NUMBER.fullmatch(name.rpartition(".")[2]) is not None
    return False


def has_leading_zeros(host: str) -> bool:
    """Return whether a host is four decimal numbers, and one of them has a leading zero, as in 010.0.0.1."""
    return re.fullmatch(r"(\d+\.){3}\d+", _bare(host)) is not None and is_misread(host)


def may_be_internal(host: str) -> bool:
    """Return whether a host is "localhost", or an IP address that is not public for any program that reads it."""
    name = _bare(host)
    readings = list(_readings(name))
    return not all(map(is_public, readings)) or name == "localhost" or name.endswith(".localhost")


def _readings(name: str) -> Iterator[Address]:
    with suppress(ValueError):
        yield ip_address(name)
    with suppress(ValueError):  # leading zeros without a meaning: 010 is 10
        yield IPv4Address(re.sub(r"\b0+(?=\d)", "", name))
    with suppress(OSError):  # forms that systems accept: 2130706433, 0x7f.1, 0177.0.0.1, 127.1
        yield IPv4Address(socket.inet_aton(name))


def _bare(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()
