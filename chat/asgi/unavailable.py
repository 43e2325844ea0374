"""Answers while the database is away or too busy: 503 instead of 500, and a close code that says "try again later"."""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader
from django.views import defaults

from chat.db import is_away
from chat.errors import unavailable
from chat.live.subscriber import TRY_LATER
from chat.views.requests import is_script

logger = logging.getLogger(__name__)
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]

RETRY_AFTER = "2"


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer for an exception that nothing has handled; Django's `handler500`.

    Django calls it while it handles the exception, for those of middleware too, such as the one that loads the session.
    """
    error = sys.exc_info()[1]
    if error is None or not is_away(error):
        return defaults.server_error(request)
    logger.warning("%s %s could not be answered: %s", request.method, request.path, error)
    if is_script(request):
        answer: HttpResponse = JsonResponse({"message": unavailable()}, status=503)
    else:
        answer = HttpResponse(loader.get_template("503.html").render(), status=503)
    answer["Retry-After"] = RETRY_AFTER
    answer._has_been_logged = True  # type: ignore[attr-defined]  # else Django logs it with a traceback, per request
    return answer


class UnavailableSockets:
    """ASGI middleware for sockets that cannot be signed in: the close code asks the client to come back later."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        accepted = False

        async def send_noting(event: Event) -> None:
            nonlocal accepted
            accepted = accepted or event["type"] == "websocket.accept"
            await send(event)

        try:
            await self._application(scope, receive, send_noting)
        except Exception as error:
            if not is_away(error):
                raise
            logger.warning("A socket could not be let in: %s", error)
            if not accepted:
                await send({"type": "websocket.accept"})
            await send({"type": "websocket.close", "code": TRY_LATER})
