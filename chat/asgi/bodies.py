"""Limit the size of request bodies, and how slowly they may arrive.

Django reads a complete body before it checks the user, so the limits are enforced here, for the declared length and for
the received bytes. Nothing of a refused body is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from django.conf import settings
from django.contrib.auth import get_user
from django.db import DatabaseError, InterfaceError
from django.urls import Resolver404, resolve
from django.utils.translation import gettext as _

from chat.asgi.refusals import ASGIApplication, Message, Receive, Scope, Send, refuse, request_of
from chat.errors import ServiceError
from chat.runner import runtime
from chat.security.session_store import SeenSession
from chat.services.messages import attachments
from chat.services.people import api_tokens, preferences
from chat.transfer import public as transfer

MEGABYTE = 1024 * 1024
# The largest body, in bytes, that anyone may send to any address.
ANONYMOUS_LIMIT = MEGABYTE
# Bytes for the multipart headers and other fields around a file.
FORM_OVERHEAD = 64 * 1024
# Seconds that a body may take, plus one second for each SLOWEST_BYTES_PER_SECOND bytes that have arrived.
GRACE_SECONDS = 20.0
SLOWEST_BYTES_PER_SECOND = 8 * 1024


class Limit(NamedTuple):
    """The largest body of a signed-in user at an address. With `takes_files`, signed-out users are asked to sign in."""

    size: int
    too_large: Callable[[], ServiceError]
    takes_files: bool = False


# The addresses that accept files, by the names of their routes.
UPLOADS: dict[str, Callable[[], Limit]] = {
    "session-attachments": lambda: _file_limit(attachments.limit_bytes(), attachments.TooLarge),
    "new-session-attachments": lambda: _file_limit(attachments.limit_bytes(), attachments.TooLarge),
    "api:upload_attachment": lambda: _file_limit(attachments.limit_bytes(), attachments.TooLarge),
    "knowledge": lambda: _file_limit(attachments.limit_bytes(), attachments.TooLarge),
    "knowledge-upload": lambda: _file_limit(attachments.limit_bytes(), attachments.TooLarge),
    # The name of a path in the API is that of its first operation.
    "api:list_knowledge": lambda: _file_limit(attachments.limit_bytes(), attachments.TooLarge),
    "import-file": lambda: _file_limit(transfer.limit_bytes(), transfer.TooLarge),
    "api:create_import": lambda: _file_limit(transfer.limit_bytes(), transfer.TooLarge),
    "api:import_sessions": lambda: _file_limit(transfer.limit_bytes(), transfer.TooLarge),
    "settings": lambda: _file_limit(preferences.MAX_PICTURE_SIZE, preferences.picture_too_large),
}


def _file_limit(size: int, too_large: Callable[[], ServiceError]) -> Limit:
    return Limit(size + FORM_OVERHEAD, too_large, takes_files=True)


def limit_of(path: str) -> Limit:
    """Return the limit for a signed-in user at an address."""
    try:
        name = resolve(path).view_name
    except Resolver404:
        name = ""
    return UPLOADS[name]() if name in UPLOADS else Limit(settings.DATA_UPLOAD_MAX_MEMORY_SIZE, _too_large)


def _too_large() -> ServiceError:
    return ServiceError("too_large", _("The request is too large."))


def _signed_out() -> ServiceError:
    return ServiceError("signed_out", _("Sign in to upload files."))


def _too_slow() -> ServiceError:
    return ServiceError("too_slow", _("The request took too long to arrive. Try again."))


def _malformed() -> ServiceError:
    return ServiceError("malformed", _("The request is malformed."))


def _unavailable() -> ServiceError:
    return ServiceError("unavailable", _("Parley can’t reach its database right now. Try again."))


class BodyRefusedError(Exception):
    """The body of the request is refused, and the rest of it is not read."""

    def __init__(self, status: int, explain: Callable[[], ServiceError]) -> None:
        super().__init__(status)
        self.status = status
        self.explain = explain


class BodyLimits:
    """ASGI middleware that refuses bodies that are too large for their address or sender, or arrive too slowly."""

    def __init__(self, app: ASGIApplication) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if b"transfer-encoding" not in headers and headers.get(b"content-length", b"0") == b"0":
            await self.app(scope, receive, send)
            return
        started = False

        async def send_and_note(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        body = Body(scope, receive)
        try:
            if b"transfer-encoding" in headers and b"content-length" in headers:
                raise BodyRefusedError(400, _malformed)  # a proxy may use the other header for the length
            await body.admit(headers.get(b"content-length"))
            await self.app(scope, body.receive, send_and_note)
        except BodyRefusedError as refused:
            if not started:
                await refuse(scope, send, refused.status, refused.explain)


class Body:
    """The incoming body of one request."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._scope = scope
        self._receive = receive
        self._allowed = ANONYMOUS_LIMIT
        self._received = 0
        self._complete = False
        self._began = asyncio.get_running_loop().time()

    async def admit(self, declared: bytes | None) -> None:
        """Check the Content-Length. Raise BodyRefusedError."""
        if declared is None:
            return
        if not declared.isdigit() or len(declared) > len(str(2**63)):
            raise BodyRefusedError(400, _malformed)
        await self._require(int(declared))

    async def receive(self) -> Message:
        """Receive the next part. Raise BodyRefusedError."""
        if self._complete:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._began + GRACE_SECONDS + self._received / SLOWEST_BYTES_PER_SECOND):
                message = await self._receive()
        except TimeoutError:
            raise BodyRefusedError(408, _too_slow) from None
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            self._complete = not message.get("more_body", False)
            await self._require(self._received)
            if self._complete:
                # Django takes a form without a length for empty, so a chunked body gets its length as a header.
                headers = [(name, value) for name, value in self._scope["headers"] if name != b"content-length"]
                self._scope["headers"] = [*headers, (b"content-length", b"%d" % self._received)]
        return message

    async def _require(self, size: int) -> None:
        """Raise BodyRefusedError unless the sender may send a body of this size to the address."""
        if size <= self._allowed:
            return
        limit = limit_of(self._scope["path"])
        if size > limit.size:
            raise BodyRefusedError(413, limit.too_large)
        try:
            signed_in = await runtime.hub().threads.run(is_signed_in, self._scope)
        except (DatabaseError, InterfaceError):
            raise BodyRefusedError(503, _unavailable) from None
        if not signed_in:
            raise BodyRefusedError(401, _signed_out) if limit.takes_files else BodyRefusedError(413, _too_large)
        self._allowed = limit.size


def is_signed_in(scope: Scope) -> bool:
    """Return whether a request has a valid token or comes from a browser that is signed in."""
    request = request_of(scope)
    kind, _space, secret = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return api_tokens.find_valid(secret) is not None
    request.session = SeenSession(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    return get_user(request).is_authenticated
