"""What every answer carries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@sync_and_async_middleware
def content_security_policy(
    get_response: Callable[[HttpRequest], Any],
) -> Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]:
    """Nothing inline, nothing foreign: what a model says cannot run or call out, even if a renderer failed."""
    if iscoroutinefunction(get_response):

        async def handle(request: HttpRequest) -> HttpResponseBase:
            response: HttpResponseBase = await get_response(request)
            response.headers.setdefault("Content-Security-Policy", POLICY)
            return response

        return handle

    def handle_sync(request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response

    return handle_sync
