"""The ids by which the log lines of one request or socket are found."""

from __future__ import annotations

import re
import secrets

from django.conf import settings

from chat.asgi.refusals import Scope

# What a proxy may send as X-Request-ID: anything else could be mistaken for another field of the line.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
_SESSION_ID = re.compile(r"/(s_[0-9a-f]{24})(?:/|$)")


def ids_of(scope: Scope) -> dict[str, str]:
    """Return the id of a request or a socket, and that of the session in its address.

    The request's id is that of a trusted proxy (HTTPS=1), or a new one.
    """
    sent = dict(scope.get("headers") or ()).get(b"x-request-id", b"").decode("latin-1") if settings.HTTPS else ""
    ids = {"request": sent if _REQUEST_ID.fullmatch(sent) else secrets.token_hex(8)}
    if found := _SESSION_ID.search(scope["path"]):
        ids["session"] = found[1]
    return ids
