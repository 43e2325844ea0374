"""Which addresses belong to the public internet: what is not known to be public is refused."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network

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
# https://www.iana.org/assignments/iana-ipv6-special-registry: global unicast but for these
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
    """Tell whether the address is on the public internet; one that wraps an IPv4 address is judged by that."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    plain = IPv6Address(int(address))  # without a zone
    if plain in _MAPPED or plain in _NAT64:
        return is_public(IPv4Address(int(plain) & 0xFFFFFFFF))
    return plain in _GLOBAL_6 and not any(plain in network for network in _NOT_PUBLIC_6)
