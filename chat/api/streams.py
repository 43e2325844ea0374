"""Answers that are sent while things happen: who follows, and what they hold meanwhile, which is nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from typing import ClassVar

from asgiref.sync import SyncToAsync, sync_to_async
from django.db import close_old_connections
from django.http import StreamingHttpResponse
from django.utils.translation import gettext as _

from chat.api.auth import ApiRequest
from chat.live.feed import Feed
from chat.live.listener import Listener
from chat.live.logins import Entry, Login, Token
from chat.models import ApiToken
from chat.running import embedded
from chat.services.errors import Refused
from chat.session_store import hash_key

# Proxies pass each piece on at once, and the compression keeps out of the way.
HEADERS = {"X-Accel-Buffering": "no"}
SSE = "text/event-stream"
STREAM_RETRY_SECONDS = 10
Pieces = Callable[[Feed], AsyncIterator[str]]


class TooManyStreams(Refused):
    CODE: ClassVar[str] = "too_many_streams"

    def __init__(self) -> None:
        words = _("You have too many event streams open. Close one, or try again later.")
        super().__init__(self.CODE, words, retry_after=STREAM_RETRY_SECONDS)


def entry_of(request: ApiRequest) -> Entry | None:
    """Return by what the request was let in; the stream ends with it (LIVE-06)."""
    if isinstance(request.auth, ApiToken):
        return Token(request.auth.pk)
    key = request.session.session_key
    return Login(hash_key(key), request.user.pk, request.user.get_session_auth_hash()) if key else None


def streamed(
    session_id: str,
    listener: Listener,
    pieces: Pieces,
    *,
    content_type: str = SSE,
    status: int = 200,
    is_limited: bool = True,
) -> StreamingHttpResponse:
    """Answer with what `pieces` yields while the listener watches the session.

    `is_limited`: count it among the streams of the user. Raises TooManyStreams if the user has as many as are allowed.
    """
    if is_limited and not embedded.may_stream(listener.user_id):
        raise TooManyStreams
    content = _watched(session_id, listener, pieces, is_limited=is_limited)
    return StreamingHttpResponse(content, status=status, content_type=content_type, headers=HEADERS)


async def _watched(session_id: str, listener: Listener, pieces: Pieces, *, is_limited: bool) -> AsyncIterator[str]:
    await _release_request_resources()
    hub = embedded.hub()
    with hub.streaming(listener.user_id) if is_limited else nullcontext(True) as has_room:
        if not has_room:  # other streams have begun since the check in `streamed`
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
