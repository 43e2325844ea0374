"""Middleware of the API: HEAD and OPTIONS for every route, errors as problems, and rate limit headers."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from chat.api.errors import CODES, MEDIA_TYPE, default_detail, problem
from chat.limits.rates import Window
from chat.middleware import finishing

PREFIX = "/api/"


@sync_and_async_middleware
def methods(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Answer HEAD as GET without the body, and OPTIONS with the allowed methods, because views implement neither."""

    async def handle(request: HttpRequest) -> HttpResponseBase:
        method = _replace_head(request)
        return _finish(request, method, await get_response(request))

    def handle_sync(request: HttpRequest) -> HttpResponseBase:
        method = _replace_head(request)
        return _finish(request, method, get_response(request))

    return handle if iscoroutinefunction(get_response) else handle_sync


def _replace_head(request: HttpRequest) -> str | None:
    """Turn a HEAD request to the API into a GET request. Return the original method."""
    method = request.method
    if method == "HEAD" and request.path_info.startswith(PREFIX):
        request.method = "GET"
    return method


def _finish(request: HttpRequest, method: str | None, response: HttpResponseBase) -> HttpResponseBase:
    """Restore the request's method, complete `Allow`, and remove the body of HEAD and OPTIONS."""
    request.method = method
    if not request.path_info.startswith(PREFIX):
        return response
    if "Allow" in response.headers:
        allowed = {*response.headers["Allow"].split(", "), "OPTIONS"}
        response.headers["Allow"] = ", ".join(sorted(allowed | {"HEAD"} if "GET" in allowed else allowed))
    if method == "OPTIONS" and response.status_code == 405:
        # Django's 405 response already has the `Allow` header.
        _remove_body(response)
        response.status_code = 204
        for name in ("Content-Type", "Content-Length"):
            response.headers.pop(name, None)
    elif method == "HEAD":
        _remove_body(response)
    return response


def _remove_body(response: HttpResponseBase) -> None:
    """Remove the body. `Content-Length` stays that of the removed body."""
    if isinstance(response, HttpResponse):
        response.headers.setdefault("Content-Length", str(len(response.content)))
        response.content = b""
    elif isinstance(response, StreamingHttpResponse):
        response.streaming_content = _no_chunks() if response.is_async else iter(())


async def _no_chunks() -> AsyncIterator[bytes]:
    for chunk in tuple[bytes, ...]():
        yield chunk


def _as_problem(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Replace an error page of Django or of other middleware by a problem. Return other responses unchanged."""
    is_problem = response.headers.get("Content-Type", "").startswith(MEDIA_TYPE)
    if is_problem or response.status_code < 400 or not request.path_info.startswith(PREFIX):
        return response
    status = response.status_code
    code = CODES.get(status, "internal" if status >= 500 else "malformed")
    replacement = problem(code, default_detail(status), status)
    if "Allow" in response.headers:
        replacement["Allow"] = response.headers["Allow"]
    return replacement


def _with_rate(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Add headers with the number of requests that the client may still make (draft-ietf-httpapi-ratelimit-headers)."""
    window: Window | None = getattr(request, "window", None)
    if window is not None and window.rate.amount:
        name, resets_in = window.name, math.ceil(window.resets_in)
        response["RateLimit-Policy"] = f'"{name}";q={window.rate.amount};w={window.rate.seconds}'
        response["RateLimit"] = f'"{name}";r={window.remaining};t={resets_in}'
    return response


problems = finishing(lambda request, response: _with_rate(request, _as_problem(request, response)))
