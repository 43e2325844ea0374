"""What holds for every address of the API: HEAD is GET without its body, and OPTIONS says which methods there are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from chat.api.edge import PREFIX

READING = "GET"


@sync_and_async_middleware
def methods(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Let views know nothing of HEAD and OPTIONS."""

    async def handle(request: HttpRequest) -> HttpResponseBase:
        method = _read_instead(request)
        return _answered(request, method, await get_response(request))

    def handle_sync(request: HttpRequest) -> HttpResponseBase:
        method = _read_instead(request)
        return _answered(request, method, get_response(request))

    return handle if iscoroutinefunction(get_response) else handle_sync


def _read_instead(request: HttpRequest) -> str | None:
    """Make a GET of a HEAD; returns what it was."""
    method = request.method
    if method == "HEAD" and request.path_info.startswith(PREFIX):
        request.method = READING
    return method


def _answered(request: HttpRequest, method: str | None, response: HttpResponseBase) -> HttpResponseBase:
    request.method = method
    if not request.path_info.startswith(PREFIX):
        return response
    if "Allow" in response.headers:
        response.headers["Allow"] = ", ".join(_allowed(response.headers["Allow"]))
    if method == "OPTIONS" and response.status_code == 405:
        _say_nothing(response)
    elif method == "HEAD":
        _empty(response)
    return response


def _allowed(known: str) -> list[str]:
    names = {*known.split(", "), "OPTIONS"}
    return sorted(names | {"HEAD"} if READING in names else names)


def _empty(response: HttpResponseBase) -> None:
    """Take away the body, and leave what was said of it."""
    if isinstance(response, HttpResponse):
        response.headers.setdefault("Content-Length", str(len(response.content)))
        response.content = b""
    elif isinstance(response, StreamingHttpResponse):
        response.streaming_content = _nothing() if response.is_async else iter(())


def _say_nothing(response: HttpResponseBase) -> None:
    """Make a good answer of a refusal, of which only the headers are to be read."""
    _empty(response)
    response.status_code = 204
    for name in ("Content-Type", "Content-Length"):
        response.headers.pop(name, None)


async def _nothing() -> AsyncIterator[bytes]:
    for piece in tuple[bytes, ...]():
        yield piece
