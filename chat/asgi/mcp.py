"""/mcp: check token, origin and rate of requests for the MCP server. The SDK answers the accepted requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING

from django.core.exceptions import DisallowedHost
from django.db import DatabaseError, InterfaceError
from django.utils.translation import gettext as _

from chat.api.errors import STATUS
from chat.asgi.refusals import ASGIApplication, Message, Receive, Scope, Send, refuse, request_of
from chat.asgi.socket_credentials import bearer_token, origin_is_trusted
from chat.db import is_unavailable
from chat.errors import ServiceError, unavailable
from chat.mcp.caller import PATH, SCOPE_KEY, Caller, caller_of
from chat.runner import runtime

if TYPE_CHECKING:
    from chat.mcp.server import ParleyServer


class McpEndpoint:
    """ASGI application: `/mcp` for MCP clients with a token, and the pages for everything else.

    The server is created for the first client, because its libraries take a second to import and many installations
    have no MCP clients.
    """

    def __init__(self, pages: ASGIApplication) -> None:
        self._pages = pages
        self._server: asyncio.Future[ParleyServer] | None = None
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] not in (PATH, PATH + "/"):
            await self._pages(scope, receive, send)
            return
        try:
            caller = await _admit(scope)
        except ServiceError as error:
            refused = error
            await refuse(scope, send, STATUS.get(refused.code, HTTPStatus.BAD_REQUEST), lambda: refused)
            return
        server = await self._start()
        await server.manager.handle_request({**scope, SCOPE_KEY: caller}, receive, _guard(send))

    async def _start(self) -> ParleyServer:
        if self._server is None:
            loop = asyncio.get_running_loop()
            self._server = loop.create_future()
            self._task = loop.create_task(self._serve(self._server), name="MCP server")
        return await asyncio.shield(self._server)

    async def _serve(self, started: asyncio.Future[ParleyServer]) -> None:
        try:
            server = await asyncio.to_thread(_make)
            try:
                async with server.manager.run():
                    started.set_result(server)
                    await asyncio.Event().wait()
            finally:
                await server.close()
        except Exception as error:
            self._server = None  # the next request tries again
            started.set_exception(error)

    async def stop(self) -> None:
        """End all requests."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])


def _make() -> ParleyServer:
    from chat.mcp.server import ParleyServer

    return ParleyServer()


async def _admit(scope: Scope) -> Caller:
    """Check the origin of a request and return its caller. Raise ServiceError."""
    request = request_of(scope)
    try:
        request.get_host()
    except DisallowedHost:
        raise ServiceError("malformed", _("The request is malformed.")) from None
    # Only browsers send an Origin. A page of another site must not act for a program on the same machine.
    if "Origin" in request.headers and not origin_is_trusted(request):
        raise ServiceError("forbidden", _("Requests from pages of other sites are not allowed."))
    secret = bearer_token(scope["headers"])
    if secret is None:
        raise ServiceError("signed_out", _("Sign in, or send a token: Authorization: Bearer parley_…"))
    if scope["method"] != "POST":  # there are no separate streams, and no sessions to end
        raise ServiceError("method_not_allowed", _("Method not allowed."))
    try:
        return await runtime.hub().threads.run(caller_of, request, secret)
    except (DatabaseError, InterfaceError) as error:
        if not is_unavailable(error):
            raise
        raise ServiceError("unavailable", unavailable()) from error


def _guard(send: Send) -> Callable[[Message], Awaitable[None]]:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name for name, _value in message["headers"]}
            extra = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
            message = {**message, "headers": [*message["headers"], *(each for each in extra if each[0] not in names)]}
        await send(message)

    return sending
