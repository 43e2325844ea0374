"""Responses that stay open while things happen: how many a user may have, and what they hold, which is nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import ClassVar

from asgiref.sync import SyncToAsync, sync_to_async
from django.db import close_old_connections
from django.http import StreamingHttpResponse
from django.utils.translation import gettext as _

from chat.api.auth import ApiRequest
from chat.errors import ServiceError
from chat.live.credentials import Credential, Login, Token
from chat.live.feed import Feed
from chat.live.subscriber import Subscriber
from chat.models import ApiToken
from chat.runner import runtime
from chat.security.session_store import hash_key

# Proxies pass each piece on at once, and the compression keeps out of the way.
HEADERS = {"X-Accel-Buffering": "no"}
SSE = "text/event-stream"
STREAM_RETRY_SECONDS = 10
Pieces = Callable[[Feed], AsyncIterator[str]]


class TooManyStreams(ServiceError):
    CODE: ClassVar[str] = "too_many_streams"

    def __init__(self) -> None:
        words = _("You have too many event streams and waiting requests open. Close one, or try again later.")
        super().__init__(self.CODE, words, retry_after=STREAM_RETRY_SECONDS)


def entry_of(request: ApiRequest) -> Credential | None:
    """Return by what the request was let in; the stream ends with it (LIVE-06)."""
    if isinstance(request.auth, ApiToken):
        return Token(request.auth.pk)
    key = request.session.session_key
    return Login(hash_key(key), request.user.pk, request.user.get_session_auth_hash()) if key else None


def require_room(user_id: int) -> None:
    """Raise TooManyStreams if the user has as many streams and waiting requests open as are allowed."""
    if not runtime.may_stream(user_id):
        raise TooManyStreams


def streamed(
    session_id: str,
    listener: Subscriber,
    pieces: Pieces,
    *,
    content_type: str = SSE,
    status: int = 200,
    without_room: Callable[[], AsyncIterator[str]] | None = None,
) -> StreamingHttpResponse:
    """Answer with what `pieces` yields while the listener watches the session. Call `require_room` first.

    Requests that arrive together may all pass `require_room`. Those that are too many then answer with what
    `without_room` yields, or with an empty body.
    """
    content = _watched(session_id, listener, pieces, without_room)
    return StreamingHttpResponse(content, status=status, content_type=content_type, headers=HEADERS)


async def _watched(
    session_id: str, listener: Subscriber, pieces: Pieces, without_room: Callable[[], AsyncIterator[str]] | None
) -> AsyncIterator[str]:
    await _release_request_resources()
    hub = runtime.hub()
    with hub.streaming(listener.user_id) as has_room:
        if not has_room:
            if without_room is not None:
                async for piece in without_room():
                    yield piece
            return
        feed = hub.watch(session_id, listener)
        try:
            async for piece in pieces(feed):
                yield piece
        finally:
            listener.leave()
            hub.unwatch(feed, listener)


async def _release_request_resources() -> None:
    """Give back the database connection and the thread that Django has for each request: a stream needs neither."""
    await sync_to_async(close_old_connections)()
    context = SyncToAsync.thread_sensitive_context.get(None)
    if context is not None and context in SyncToAsync.context_to_thread_executor:
        SyncToAsync.context_to_thread_executor.pop(context).shutdown(wait=False)
