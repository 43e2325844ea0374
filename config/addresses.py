"""The forms of addresses and host names in settings. Pure."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

USUAL_PORTS = {"http": 80, "https": 443}
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


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
