"""Authentication of sockets: by a cookie from a browser on a trusted page, or by an API token in the handshake."""

from __future__ import annotations

from typing import Any

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, parse_cookie
from django.middleware.csrf import CsrfViewMiddleware

from chat.asgi.refusals import request_of
from chat.security.session_store import SeenSession

SCHEME = b"bearer"


class AuthenticatedSockets:
    """ASGI middleware for sockets, which refuses those from pages of other origins.

    Browsers send the user's cookie with every handshake, whichever page opens the socket. A handshake with a token is
    authenticated only by the token, and its cookies are ignored. It needs no `Origin`. A page of another site cannot
    misuse a token, because a browser's sockets cannot send `Authorization`. But if there is an `Origin`, it is checked.

    Nothing is looked up here. The consumer does that after it has accepted the socket, with the `api_token` or
    `session` in the scope. Channels' own middleware looks up earlier, in the one thread that synchronous views share,
    so no socket would be answered while the database hangs.
    """

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = scope["headers"]
        token = bearer_token(headers)
        needs_origin = token is None or any(name == b"origin" for name, _value in headers)
        if needs_origin and not origin_is_trusted(request_of(scope)):
            await WebsocketDenier()(scope, receive, send)
            return
        scope = {**scope, "api_token": token}
        if token is None:
            scope["session"] = SeenSession(_session_key(headers))
        await self._application(scope, receive, send)


def origin_is_trusted(request: HttpRequest) -> bool:
    """Return whether a form from the request's Origin would be accepted.

    Accepted are Parley's own origin (scheme, host and port) and those in CSRF_TRUSTED_ORIGINS. A request without an
    Origin is not from a browser, and is not trusted with a cookie.
    """
    if not request.headers.get("Origin"):
        return False
    try:
        request.get_host()
    except DisallowedHost:
        return False
    # Django's own comparison, so that sockets and forms always use the same rule.
    return bool(CsrfViewMiddleware(lambda request: HttpResponse())._origin_verified(request))  # type: ignore[attr-defined]  # private, and left out of the stubs


def bearer_token(headers: list[tuple[bytes, bytes]]) -> str | None:
    """Return the token in `Authorization: Bearer`, or None without such a header."""
    for name, value in headers:
        scheme, _space, token = value.partition(b" ")
        if name == b"authorization" and scheme.lower() == SCHEME:
            return token.strip().decode("latin-1")
    return None


def _session_key(headers: list[tuple[bytes, bytes]]) -> str | None:
    """Return the key of the browser's session, or None without a cookie."""
    cookies = "; ".join(value.decode("latin-1") for name, value in headers if name == b"cookie")
    return parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME)
