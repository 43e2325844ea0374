"""Check addresses of other servers that users enter: public ones with HTTPS, and hosts that the operator allows."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _
from yarl import URL

from agents.mcp.config import server_address
from agents.toolbox.address_policy import is_allowed
from agents.toolbox.public_addresses import is_misread, may_be_internal
from chat.errors import Invalid
from chat.services.messages.validation import validate_characters

MAX_LENGTH = 2000


def checked_address(url: str, *, internal_hosts: Sequence[str], setting: str) -> str:
    """Return an address as it is stored. Raise Invalid; the error has the name of the `setting` for internal hosts.

    Host names are resolved and checked when a connection is opened.
    """
    try:
        url = server_address(validate_characters(url.strip()))
        host = URL(url).raw_host or ""
    except ValueError:
        host = ""
    is_internal = bool(internal_hosts) and bool(host) and is_allowed(host, internal_hosts)
    if not host or len(url) > MAX_LENGTH or (url.startswith("http://") and not is_internal):
        raise Invalid(_("Enter a web address that begins with https:// and has no password in it."))
    if not is_internal and may_be_internal(host):
        words = _("“%(host)s” is an internal address. The operator of this server can allow it: %(setting)s.")
        raise Invalid(words % {"host": host, "setting": setting})
    if not is_internal and is_misread(host):
        words = _("“%(host)s” isn’t a valid IP address. Enter a host name, or an IP address such as 8.8.8.8.")
        raise Invalid(words % {"host": host})
    return url


def host_of(url: str) -> str:
    """Return the host and port of a checked address."""
    parsed = URL(url)
    return f"{parsed.raw_host}:{parsed.port}"
