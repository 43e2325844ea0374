"""How sockets are authenticated: by the cookie of a browser, or by an API token in the handshake."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from channels.auth import AuthMiddlewareStack

Application = Callable[[Any, Any, Any], Awaitable[Any]]
SCHEME = b"bearer"


def authenticated(sockets: Application, check_origin: Callable[[Application], Application]) -> Application:
    """Wrap the routes of the sockets.

    A handshake with a token is authenticated by it alone: its cookies are ignored. It needs no `Origin`, since only
    browsers act for others without being asked, and their sockets cannot send `Authorization`; an `Origin` that is
    there is checked all the same. The consumer checks the token itself, which it finds as `api_token` in the scope.
    """

    async def by_credential(scope: Any, receive: Any, send: Any) -> None:
        async def sending_directly(scope: Any, receive: Any, _send: Any) -> None:
            # Channels' session middleware checks at each message whether the session must be saved. Sockets never
            # change it, and the check took 6 % of a stream's CPU.
            await sockets(scope, receive, send)

        with_cookie = cast("Application", AuthMiddlewareStack(sending_directly))  # the stubs allow for ASGI 2 as well
        await (with_cookie if scope["api_token"] is None else sockets)(scope, receive, send)

    checked = check_origin(by_credential)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        headers = scope["headers"]
        token = bearer_token(headers)
        names = {name for name, _value in headers}
        needs_check = token is None or b"origin" in names
        await (checked if needs_check else by_credential)({**scope, "api_token": token}, receive, send)

    return application


def bearer_token(headers: list[tuple[bytes, bytes]]) -> str | None:
    """Return the token in `Authorization: Bearer`; None without such a header."""
    for name, value in headers:
        scheme, _space, token = value.partition(b" ")
        if name == b"authorization" and scheme.lower() == SCHEME:
            return token.strip().decode("latin-1")
    return None
