"""Check the addresses of other machines that people enter: public ones by HTTPS, and what the operator allows."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address

from django.utils.translation import gettext as _
from yarl import URL

from agents.mcp.config import server_address
from agents.toolbox.address_policy import is_allowed
from agents.toolbox.public_addresses import is_public
from chat.errors import Invalid
from chat.services.messages.validation import validate_characters

LONGEST = 2000


def checked_address(url: str, *, internal_hosts: Sequence[str], setting: str) -> str:
    """Return an address as it is stored. Raises Invalid, which names the operator's setting for internal hosts.

    Names of hosts are resolved and checked when they are connected to.
    """
    try:
        url = server_address(validate_characters(url.strip()))
        host = URL(url).raw_host or ""
    except ValueError:
        host = ""
    is_internal = bool(internal_hosts) and bool(host) and is_allowed(host, internal_hosts)
    if not host or len(url) > LONGEST or (url.startswith("http://") and not is_internal):
        raise Invalid(_("Enter a web address that begins with https:// and has no password in it."))
    if not is_internal and _is_internal_address(host):
        words = _("“%(host)s” is an internal address. The operator of this server can allow it: %(setting)s.")
        raise Invalid(words % {"host": host, "setting": setting})
    return url


def host_of(url: str) -> str:
    """Return the host and port of a checked address."""
    parsed = URL(url)
    return f"{parsed.raw_host}:{parsed.port}"


def _is_internal_address(host: str) -> bool:
    """Whether a host is written as an address that is not public."""
    try:
        return not is_public(ip_address(host.strip("[]")))
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
