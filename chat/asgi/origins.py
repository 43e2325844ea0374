"""Check which web pages may open a socket with a user's cookie."""

from __future__ import annotations

from channels.security.websocket import WebsocketDenier
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware

from chat.asgi.refusals import ASGIApplication, Receive, Scope, Send, request_of


class OriginCheck:
    """ASGI middleware that refuses sockets from pages of other origins.

    Browsers send the user's cookie with every handshake, whichever page opens the socket.
    """

    def __init__(self, app: ASGIApplication) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if origin_is_trusted(request_of(scope)):
            await self.app(scope, receive, send)
        else:
            await WebsocketDenier()(scope, receive, send)


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
