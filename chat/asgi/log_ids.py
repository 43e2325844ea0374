"""Ids in log lines, by which all lines of one request or socket can be found."""

from __future__ import annotations

import re
import secrets

from django.conf import settings

from chat.asgi.refusals import Scope

# The accepted form of X-Request-ID from a proxy. Other values could be mistaken for another field of the line.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
_SESSION_ID = re.compile(r"/(s_[0-9a-f]{24})(?:/|$)")


def ids_of(scope: Scope) -> dict[str, str]:
    """Return the id of a request or a socket, and the id of the session in its address.

    The request's id comes from a trusted proxy (HTTPS=1), or is a new one.
    """
    sent = dict(scope.get("headers") or ()).get(b"x-request-id", b"").decode("latin-1") if settings.HTTPS else ""
    ids = {"request": sent if _REQUEST_ID.fullmatch(sent) else secrets.token_hex(8)}
    if found := _SESSION_ID.search(scope["path"]):
        ids["session"] = found[1]
    return ids
