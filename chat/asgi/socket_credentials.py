"""Authentication of sockets: by a browser's cookie, or by an API token in the handshake."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings
from django.http import parse_cookie

from chat.security.session_store import SeenSession

Application = Callable[[Any, Any, Any], Awaitable[Any]]
SCHEME = b"bearer"


def authenticated(sockets: Application, check_origin: Callable[[Application], Application]) -> Application:
    """Wrap the routes of the sockets.

    A handshake with a token is authenticated only by the token, and its cookies are ignored. It needs no `Origin`. A
    page of another site cannot misuse a token, because a browser's sockets cannot send `Authorization`. But if there is
    an `Origin`, it is checked.

    Nothing is looked up here. The consumer does that after it has accepted the socket, with the `api_token` or
    `session` in the scope. Channels' own middleware looks up earlier, in the one thread that synchronous views share,
    so no socket would be answered while the database hangs.
    """

    async def by_credential(scope: Any, receive: Any, send: Any) -> None:
        if scope["api_token"] is None:
            scope = {**scope, "session": SeenSession(session_key(scope["headers"]))}
        await sockets(scope, receive, send)

    checked = check_origin(by_credential)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        headers = scope["headers"]
        token = bearer_token(headers)
        names = {name for name, _value in headers}
        needs_check = token is None or b"origin" in names
        await (checked if needs_check else by_credential)({**scope, "api_token": token}, receive, send)

    return application


def session_key(headers: list[tuple[bytes, bytes]]) -> str | None:
    """Return the key of the browser's session, or None without a cookie."""
    cookies = "; ".join(value.decode("latin-1") for name, value in headers if name == b"cookie")
    return parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME)


def bearer_token(headers: list[tuple[bytes, bytes]]) -> str | None:
    """Return the token in `Authorization: Bearer`, or None without such a header."""
    for name, value in headers:
        scheme, _space, token = value.partition(b" ")
        if name == b"authorization" and scheme.lower() == SCHEME:
            return token.strip().decode("latin-1")
    return None
