"""Answers that are sent while things happen: who follows, and what they hold meanwhile, which is nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from asgiref.sync import SyncToAsync, sync_to_async
from django.db import close_old_connections
from django.http import StreamingHttpResponse

from chat.api.auth import ApiRequest
from chat.live.feed import Feed
from chat.live.listener import Listener
from chat.live.logins import Entry, Login, Token
from chat.models import ApiToken
from chat.running import embedded
from chat.session_store import hash_key

# Proxies pass each piece on at once, and the compression keeps out of the way.
HEADERS = {"X-Accel-Buffering": "no"}
SSE = "text/event-stream"
Pieces = Callable[[Feed], AsyncIterator[str]]


def entry_of(request: ApiRequest) -> Entry | None:
    """Return by what the request was let in; the stream ends with it (LIVE-06)."""
    if isinstance(request.auth, ApiToken):
        return Token(request.auth.pk)
    key = request.session.session_key
    return Login(hash_key(key), request.user.pk, request.user.get_session_auth_hash()) if key else None


def streamed(
    session_id: str, listener: Listener, pieces: Pieces, *, content_type: str = SSE, status: int = 200
) -> StreamingHttpResponse:
    """Answer with what `pieces` yields while the listener watches the session."""
    content = _watched(session_id, listener, pieces)
    return StreamingHttpResponse(content, status=status, content_type=content_type, headers=HEADERS)


async def _watched(session_id: str, listener: Listener, pieces: Pieces) -> AsyncIterator[str]:
    await _release_request_resources()
    hub = embedded.hub()
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
