"""Responses while the database is away or too busy: status 503 instead of 500. Consumers close their sockets."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader
from django.views import defaults

from chat.asgi.refusals import ASGIApplication, Scope, refuse
from chat.db import is_unavailable
from chat.errors import ServiceError, unavailable
from chat.views.requests import is_script

logger = logging.getLogger(__name__)
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]

RETRY_AFTER = "2"
# Seconds without an answer after which a request starts a check whether the database answers at all.
PATIENCE = 8.0


def server_error(request: HttpRequest) -> HttpResponse:
    """Return the response for an unhandled exception. This is Django's `handler500`.

    Django calls it while it handles the exception. This includes exceptions in middleware, such as the one that
    loads the session.
    """
    error = sys.exc_info()[1]
    if error is None or not is_unavailable(error):
        return defaults.server_error(request)
    logger.warning("Could not answer %s %s: %s", request.method, request.path, error)
    if is_script(request):
        answer: HttpResponse = JsonResponse({"message": unavailable()}, status=503)
    else:
        answer = HttpResponse(loader.get_template("503.html").render(), status=503)
    answer["Retry-After"] = RETRY_AFTER
    answer._has_been_logged = True  # type: ignore[attr-defined]  # otherwise Django logs a traceback per request
    return answer


class UnavailablePages:
    """ASGI middleware that answers 503 if a request waits for a database that does not answer.

    PostgreSQL's own time limits do not help when the server is frozen. The request itself continues, and its thread
    ends when the database answers. `is_silent` returns whether the database does not answer.
    """

    def __init__(self, application: ASGIApplication, is_silent: Callable[[], Awaitable[bool]]) -> None:
        self._application = application
        self._is_silent = is_silent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = _Reply(scope, send, self._is_silent)
        try:
            await self._application(scope, receive, reply.send)
        finally:
            reply.end()


class _Reply:
    """The response to one request, which the application or, in its place, this class sends."""

    def __init__(self, scope: Scope, send: Send, is_silent: Callable[[], Awaitable[bool]]) -> None:
        self._scope = scope
        self._send = send
        self._is_silent = is_silent
        self._is_begun = self._is_refused = self._is_over = False
        self._check: asyncio.Task[None] | None = None
        self._wait()

    async def send(self, event: Event) -> None:
        if not self._is_refused:
            self._is_begun = True
            self._timer.cancel()
            await self._send(event)

    def end(self) -> None:
        self._is_over = True
        self._timer.cancel()

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(PATIENCE, self._start_check)

    def _start_check(self) -> None:
        self._check = asyncio.get_running_loop().create_task(self._refuse_if_silent())

    async def _refuse_if_silent(self) -> None:
        is_silent = await self._is_silent()
        if self._is_begun or self._is_over:
            return
        if not is_silent:
            self._wait()
            return
        self._is_refused = True
        logger.warning(
            "Could not answer %s %s: the database does not respond", self._scope["method"], self._scope["path"]
        )
        await refuse(self._scope, self._send, HTTPStatus.SERVICE_UNAVAILABLE, _silent)


def _silent() -> ServiceError:
    return ServiceError("unavailable", unavailable(), retry_after=int(RETRY_AFTER))
