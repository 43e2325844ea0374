"""Middleware for all responses: sessions, compression, language, origin, second factor, refusals and headers."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from gzip import GzipFile
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.conf import settings
from django.contrib.sessions.middleware import SessionMiddleware
from django.db import DatabaseError, InterfaceError
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    JsonResponse,
    StreamingHttpResponse,
)
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import render
from django.urls import Resolver404, resolve, reverse
from django.utils import translation
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.decorators import sync_and_async_middleware
from django.utils.text import StreamingBuffer
from django.utils.translation import gettext as _

from chat import languages
from chat.errors import FilesUnavailable
from chat.limits.rates import RateLimited
from chat.origin import origin_of, using_origin
from chat.security.password_hashing import HashersBusy
from chat.security.session_store import SessionStore
from chat.services.people.second_factor import is_missing

# Responses that are not compressed. Images and PDF files hardly get smaller, and a large photograph takes a second.
# Events are small and sent one by one.
PACKED = ("image/", "application/pdf", "text/event-stream")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Dictation uses the microphone. The other features are not used, and an injected script should not get them.
PERMISSIONS = "microphone=(self), " + ", ".join(
    f"{feature}=()"
    for feature in (
        "accelerometer",
        "autoplay",
        "camera",
        "display-capture",
        "geolocation",
        "gyroscope",
        "hid",
        "magnetometer",
        "midi",
        "payment",
        "serial",
        "usb",
        "xr-spatial-tracking",
    )
)


# Seconds after which a password may be sent again if too many others are being checked.
RETRY_SECONDS = 5
# Views that are available before a second factor is set up: signing in and out, the setup, and the app's manifest.
WITHOUT_SECOND_FACTOR = {
    "sign-in",
    "sign-in-link",
    "sign-out",
    "second-step",
    "passkey-sign-in",
    "confirm",
    "two-step",
    "two-step-app",
    "two-step-passkey",
    "admin:logout",
    "manifest",
}


class LoginSessions(SessionMiddleware):
    """Django's sessions. Logins that are used are prolonged once a day, and only signing out deletes their cookie.

    Django also deletes it if the key in a request is no longer known. A change of the password gives the browser a new
    key. A request of another tab may still have the old one, and its response would delete the cookie with the new key.
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        response = super().process_response(request, response)
        cookie = response.cookies.get(settings.SESSION_COOKIE_NAME)
        if cookie is not None and not cookie.value and not getattr(request, "signs_out", False):
            del response.cookies[settings.SESSION_COOKIE_NAME]
        if cookie is None and response.status_code < 500 and _prolong_login(request):
            _set_session_cookie(request, response)
        return response


def _prolong_login(request: HttpRequest) -> bool:
    """Prolong the login of a user who is signed in. Return whether this was done, so that the cookie must follow."""
    session, user = getattr(request, "session", None), getattr(request, "user", None)
    if not isinstance(session, SessionStore) or user is None or not user.is_authenticated:
        return False
    try:
        return session.prolong()
    except (DatabaseError, InterfaceError):  # the next request tries again
        return False


def _set_session_cookie(request: HttpRequest, response: HttpResponse) -> None:
    """Set the cookie as Django does after a change of the session."""
    response.set_cookie(
        settings.SESSION_COOKIE_NAME,
        request.session.session_key or "",
        max_age=settings.SESSION_COOKIE_AGE,
        domain=settings.SESSION_COOKIE_DOMAIN,
        path=settings.SESSION_COOKIE_PATH,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=settings.SESSION_COOKIE_HTTPONLY,
        samesite=settings.SESSION_COOKIE_SAMESITE,
    )


class Compression(GZipMiddleware):
    """Compression of pages, to about a fifth. Responses that are compressed already stay as they are."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        packed = response.headers.get("Content-Type", "").startswith(PACKED)
        # A response that is sent piece by piece while things happen must not wait in a compressor. Archives and most
        # other binary downloads hardly get smaller.
        packed = packed or response.headers.get("X-Accel-Buffering") == "no"
        # Ranges count the bytes of the file, not those of a compressed response.
        packed = packed or "Accept-Ranges" in response.headers or response.has_header("Content-Encoding")
        if packed:
            return response
        pieces = response.streaming_content if isinstance(response, StreamingHttpResponse) else None
        response = super().process_response(request, response)
        if not response.has_header("Content-Encoding"):
            return response
        # A response without a length is sent in chunks, so browsers can tell whether it is complete. Firefox does not
        # compare a compressed response with its length: after a broken connection, it passes half a message to scripts.
        if getattr(request, "scope", {}).get("http_version") != "1.0":  # HTTP/1.0 has no chunks
            response.headers.pop("Content-Length", None)
        if isinstance(pieces, AsyncIterator):
            response.streaming_content = _one_stream(pieces, self.max_random_bytes)  # type: ignore[attr-defined]  # as above
        return response


async def _one_stream(pieces: AsyncIterator[bytes], max_random_bytes: int) -> AsyncIterator[bytes]:
    """Compress pieces to one gzip stream.

    Django makes a stream of each piece, and browsers read only the first one. Like Django, this adds a random number of
    bytes, so that the size of a response does not reveal what is in it.
    """
    buffer = StreamingBuffer()
    padding = "a" * secrets.randbelow(max_random_bytes)
    with GzipFile(filename=padding, mode="wb", compresslevel=6, fileobj=buffer, mtime=0) as packer:
        async for piece in pieces:
            packer.write(piece)
            if packed := buffer.read():
                yield packed
    yield buffer.read()


@sync_and_async_middleware
def language(
    get_response: Callable[[HttpRequest], Any],
) -> Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]:
    """Respond in the user's language, and restore the previous language afterwards (UI-13)."""
    if iscoroutinefunction(get_response):

        async def handle(request: HttpRequest) -> HttpResponseBase:
            chosen = await sync_to_async(languages.of_request)(request)
            with translation.override(chosen):
                return _add_language_headers(await get_response(request), chosen)

        return handle

    def handle_sync(request: HttpRequest) -> HttpResponseBase:
        chosen = languages.of_request(request)
        with translation.override(chosen):
            return _add_language_headers(get_response(request), chosen)

    return handle_sync


@sync_and_async_middleware
def origin(
    get_response: Callable[[HttpRequest], Any],
) -> Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]:
    """Set the origin of the request for services."""
    if iscoroutinefunction(get_response):

        async def handle(request: HttpRequest) -> HttpResponseBase:
            with using_origin(origin_of(request)):
                response: HttpResponseBase = await get_response(request)
                return response

        return handle

    def handle_sync(request: HttpRequest) -> HttpResponseBase:
        with using_origin(origin_of(request)):
            response: HttpResponseBase = get_response(request)
            return response

    return handle_sync


@sync_and_async_middleware
def second_factor(
    get_response: Callable[[HttpRequest], Any],
) -> Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]:
    """Redirect users who must set up a second factor (REQUIRE_MFA) to its page.

    Place it after `language`, which loads the user and the session, so that it needs no query and no thread.
    """
    if iscoroutinefunction(get_response):

        async def handle(request: HttpRequest) -> HttpResponseBase:
            response: HttpResponseBase = _set_up_first(request) or await get_response(request)
            return response

        return handle

    def handle_sync(request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = _set_up_first(request) or get_response(request)
        return response

    return handle_sync


def _set_up_first(request: HttpRequest) -> HttpResponseBase | None:
    user = request.user
    # The API checks cookies in api/auth.py; requests with a token need no second factor.
    if not user.is_authenticated or request.path_info.startswith("/api/") or not is_missing(user, request.session):
        return None
    try:
        if resolve(request.path_info).view_name in WITHOUT_SECOND_FACTOR:
            return None
    except Resolver404:
        return None
    message = _("This server requires two-step verification for your account. Set it up in your settings.")
    if "HX-Request" in request.headers:
        return HttpResponse(status=403, headers={"HX-Redirect": reverse("two-step")})
    if request.headers.get("Accept") == "application/json":
        return JsonResponse({"code": "second_factor_required", "message": message}, status=403)
    return HttpResponseRedirect(reverse("two-step"))


def _add_language_headers(response: HttpResponseBase, chosen: str) -> HttpResponseBase:
    """Return the response with its headers about the language."""
    patch_vary_headers(response, ("Accept-Language",))
    response.headers.setdefault("Content-Language", chosen)
    return response


@sync_and_async_middleware
def refusals(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Answer requests that exceed a limit with 429, and requests for files that are unavailable with 503.

    Views may show these errors in their own pages instead.
    """
    middleware = finishing(lambda request, response: response)(get_response)
    middleware.process_exception = _refusal  # type: ignore[attr-defined]  # Django looks for it on the callable
    return middleware


def _refusal(request: HttpRequest, error: Exception) -> HttpResponse | None:
    if isinstance(error, HashersBusy):
        error = RateLimited(RETRY_SECONDS, _("Many people are signing in right now. Try again in %(wait)s."))
    if not isinstance(error, RateLimited | FilesUnavailable):
        return None
    status = 429 if isinstance(error, RateLimited) else 503
    response: HttpResponse
    if request.headers.get("Accept") == "application/json":
        response = JsonResponse({"code": error.code, "message": error.message, **error.details}, status=status)
    elif "HX-Request" in request.headers:
        response = HttpResponse(error.message, status=status, content_type="text/plain; charset=utf-8")
    else:
        page = "refused.html" if status == 429 else "503.html"
        response = render(request, page, {"status": status, "message": error.message}, status=status)
    response["Retry-After"] = str(error.details.get("retry_after", RETRY_SECONDS))
    return response


def finishing(
    finish: Callable[[HttpRequest, HttpResponseBase], HttpResponseBase],
) -> Callable[[Callable[[HttpRequest], Any]], Callable[[HttpRequest], Any]]:
    """Return a middleware from a function on responses, for sync and async views."""

    @sync_and_async_middleware
    def middleware(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
        async def handle(request: HttpRequest) -> HttpResponseBase:
            return finish(request, await get_response(request))

        def handle_sync(request: HttpRequest) -> HttpResponseBase:
            return finish(request, get_response(request))

        return handle if iscoroutinefunction(get_response) else handle_sync

    return middleware


def _add_policies(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Forbid inline and external scripts, so that model output cannot run any, even if the renderer has a bug."""
    response.headers.setdefault("Content-Security-Policy", POLICY)
    response.headers.setdefault("Permissions-Policy", PERMISSIONS)
    response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
    return response


def _forbid_caching(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Forbid caching unless the view allows it. Responses are personal and must not appear after signing out."""
    response.headers.setdefault("Cache-Control", "private, no-store")
    return forbid_changes(response)


def forbid_changes(response: HttpResponseBase) -> HttpResponseBase:
    """Forbid proxies to change HTML. Cloudflare would replace email addresses in it by “[email protected]”.

    Its script restores the addresses only in whole pages, not in parts that scripts load.
    """
    if response.headers.get("Content-Type", "").startswith("text/html"):
        patch_cache_control(response, no_transform=True)
    return response


content_security_policy = finishing(_add_policies)
not_cached = finishing(_forbid_caching)
