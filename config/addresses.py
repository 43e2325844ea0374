"""The forms of addresses and host names in settings; pure."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

USUAL_PORTS = {"http": 80, "https": 443}
NAME = r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?\.?"


def web_origin(text: str, *, with_wildcard: bool = False) -> str:
    """Return an address of scheme, host and perhaps port as browsers write it. Raises ValueError for anything else.

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
    """Return a host as it is compared with those of requests: a name, `.example.org` for all below it, an IP address,
    or `*`. Raises ValueError for anything else."""
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
