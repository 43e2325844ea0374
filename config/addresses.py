"""The forms of addresses and host names in settings. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

USUAL_PORTS = {"http": 80, "https": 443}
# The ends of names that lead to no host on the internet (RFC 2606, RFC 6761).
RESERVED = {"example", "invalid", "localhost", "test"}
NAME = r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?\.?"


def web_origin(text: str, *, with_wildcard: bool = False) -> str:
    """Return an address of scheme, host and optional port in the form of browsers. Raise ValueError for other text.

    `with_wildcard` allows `https://*.example.org`.
    """
    address = urlsplit(text.strip())
    host = address.hostname or ""
    origin = f"{address.scheme}://{address.netloc.lower()}"
    name = host.removeprefix("*.") if with_wildcard else host
    is_plain = text.strip().rstrip("/").lower() == origin and "@" not in origin and address.port != 0
    if address.scheme not in USUAL_PORTS or not is_plain or not (_is_ip(host) or re.fullmatch(NAME, name)):
        raise ValueError(text)
    shown = f"[{host}]" if ":" in host else host
    port = "" if address.port in (None, USUAL_PORTS[address.scheme]) else f":{address.port}"
    return f"{address.scheme}://{shown}{port}"


def host_name(text: str) -> str:
    """Return a host in the form in which it is compared with the hosts of requests. Raise ValueError for other text.

    It is a name, `.example.org` for all names below it, an IP address, or `*`.
    """
    name = text.strip().lower()
    bare = name[1:-1] if name.startswith("[") and name.endswith("]") else name
    if _is_ip(bare):
        return f"[{bare}]" if ":" in bare else bare
    if name != "*" and not re.fullmatch(rf"\.?{NAME}", name):
        raise ValueError(text)
    return name


def contact_address(public_url: str, hosts: Iterable[str]) -> str:
    """Return an https address at which the operator can be reached, or "".

    It is `public_url`, or else the address of the first host that can be a name on the internet.
    """
    if public_url.startswith("https://"):
        return public_url
    return next((f"https://{host}" for host in hosts if _can_be_public(host)), "")


def leads_nowhere(contact: str) -> bool:
    """Return whether a `mailto:` or `https:` address has no host, or a reserved one such as localhost."""
    scheme, _, rest = contact.partition(":")
    user, _, host = re.split("[/?#]", rest.lstrip("/"), maxsplit=1)[0].rpartition("@")
    name = host.partition(":")[0]
    return not name or _is_reserved(name) or (scheme == "mailto" and not user)


def _can_be_public(host: str) -> bool:
    is_full_name = "." in host.rstrip(".") and not host.startswith(".")
    return is_full_name and not _is_ip(host.strip("[]")) and not _is_reserved(host)


def _is_reserved(host: str) -> bool:
    return host.lower().rstrip(".").rpartition(".")[2] in RESERVED


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
