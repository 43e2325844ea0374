"""Responses to requests that are refused before Django sees them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from io import BytesIO
from typing import Any

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext as _

from chat.api.errors import problem
from chat.api.middleware import PREFIX
from chat.errors import ServiceError
from chat.mcp.caller import PATH
from chat.middleware import PERMISSIONS, POLICY, forbid_changes
from chat.views.requests import is_script

# Any, because servers, Channels and Django have different types for these.
Scope = Any
Message = Any
Receive = Any
Send = Any
ASGIApplication = Callable[[Scope, Receive, Send], Awaitable[None]]


def request_of(scope: Scope) -> ASGIRequest:
    """Return the scope of an HTTP request or a WebSocket as Django's request, without a body."""
    if scope["type"] == "websocket":
        scheme = "https" if scope.get("scheme") == "wss" else "http"
        headers = [_with_http(*each) for each in scope["headers"]]
        scope = {**scope, "method": "GET", "scheme": scheme, "headers": headers}
    return ASGIRequest(scope, BytesIO())


def _with_http(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Return a header of a WebSocket with the scheme of HTTP, because Traefik sends `X-Forwarded-Proto: wss`."""
    is_scheme = name == b"x-forwarded-proto" and value in (b"ws", b"wss")
    return name, value.replace(b"ws", b"http") if is_scheme else value


async def refuse(scope: Scope, send: Send, status: int, explain: Callable[[], ServiceError]) -> None:
    """Respond with `status` and the error that `explain` returns, in the language of the request."""
    request = request_of(scope)
    with translation.override(translation.get_language_from_request(request)):
        await send_response(send, _response(request, status, explain()))


async def refuse_connection(
    scope: Scope, receive: Receive, send: Send, status: int, explain: Callable[[], ServiceError]
) -> None:
    """Refuse a request like `refuse`, or a socket, whose client gets no explanation."""
    if scope["type"] == "websocket":
        await WebsocketDenier()(scope, receive, send)
    else:
        await refuse(scope, send, status, explain)


def restarting() -> ServiceError:
    """Return the error for a connection that this process can no longer serve."""
    return ServiceError("unavailable", _("Parley is restarting. Try again in a moment."))


def _response(request: ASGIRequest, status: int, refused: ServiceError) -> HttpResponse:
    """Return a problem document for the API, JSON for scripts of the pages, and otherwise a page."""
    response: HttpResponse
    if request.path_info.startswith((PREFIX, PATH)):
        response = problem(refused.code, refused.message, status, **refused.details)
    elif is_script(request):
        response = JsonResponse({"code": refused.code, "message": refused.message}, status=status)
    else:
        html = render_to_string("refused.html", {"status": status, "message": refused.message})
        response = HttpResponse(html, status=status)
    if "retry_after" in refused.details:
        response["Retry-After"] = str(refused.details["retry_after"])
    if status == HTTPStatus.BAD_REQUEST:
        response["Connection"] = "close"  # where the next request begins is uncertain
    response["Content-Length"] = str(len(response.content))
    response["Content-Language"] = translation.get_language()
    response["Content-Security-Policy"] = POLICY
    response["Permissions-Policy"] = PERMISSIONS
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    response["Cache-Control"] = "private, no-store"
    forbid_changes(response)
    response["X-Content-Type-Options"] = "nosniff"
    response["X-Frame-Options"] = settings.X_FRAME_OPTIONS
    return response


async def send_response(send: Send, response: HttpResponse) -> None:
    """Send a complete Django response over ASGI."""
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.items()]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})
