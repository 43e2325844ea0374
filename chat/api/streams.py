"""Streaming responses that follow a session. Each user can have a limited number of them open."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import ClassVar

from asgiref.sync import SyncToAsync, sync_to_async
from django.db import close_old_connections
from django.http import StreamingHttpResponse
from django.utils.translation import gettext as _

from chat.api.auth import ApiRequest
from chat.errors import ServiceError
from chat.live.credentials import Credential, Token, login_of
from chat.live.feed import Feed
from chat.live.subscriber import Subscriber
from chat.models import ApiToken
from chat.runner import runtime

# Makes proxies send each chunk immediately. The middleware Compression does not compress such responses.
HEADERS = {"X-Accel-Buffering": "no"}
SSE = "text/event-stream"
STREAM_RETRY_SECONDS = 10
Chunks = Callable[[Feed], AsyncIterator[str]]


class TooManyStreams(ServiceError):
    CODE: ClassVar[str] = "too_many_streams"

    def __init__(self) -> None:
        message = _("You have too many event streams and waiting requests open. Close one, or try again later.")
        super().__init__(self.CODE, message, retry_after=STREAM_RETRY_SECONDS)


def credential_of(request: ApiRequest) -> Credential | None:
    """Return the token or login that authenticated the request. The stream ends when it expires (LIVE-06)."""
    if isinstance(request.auth, ApiToken):
        return Token(request.auth.pk)
    return login_of(request.user, request.session)


def require_stream_slot(user_id: int) -> None:
    """Raise TooManyStreams if the user has reached the limit of open streams and waiting requests."""
    if not runtime.may_stream(user_id):
        raise TooManyStreams


def stream_response(
    session_id: str,
    subscriber: Subscriber,
    chunks: Chunks,
    *,
    content_type: str = SSE,
    status: int = 200,
    when_full: Callable[[], AsyncIterator[str]] | None = None,
) -> StreamingHttpResponse:
    """Return a response that streams `chunks` while the subscriber watches the session.

    Call `require_stream_slot` first. Several concurrent requests can pass that check. Those above the limit get the
    chunks of `when_full`, or an empty body without it.
    """
    content = watch_session(session_id, subscriber, chunks, when_full)
    return StreamingHttpResponse(content, status=status, content_type=content_type, headers=HEADERS)


async def watch_session(
    session_id: str, subscriber: Subscriber, chunks: Chunks, when_full: Callable[[], AsyncIterator[str]] | None
) -> AsyncIterator[str]:
    """Yield `chunks` while the subscriber watches the session, or the chunks of `when_full` if no slot is free."""
    await _release_request_resources()
    hub = runtime.hub()
    with hub.streaming(subscriber.user_id) as has_slot:
        if not has_slot:
            if when_full is not None:
                async for chunk in when_full():
                    yield chunk
            return
        feed = hub.watch(session_id, subscriber)
        try:
            async for chunk in chunks(feed):
                yield chunk
        finally:
            subscriber.leave()
            hub.unwatch(feed, subscriber)


async def _release_request_resources() -> None:
    """Release the database connection and the thread of the request, because a stream needs neither."""
    await sync_to_async(close_old_connections)()
    context = SyncToAsync.thread_sensitive_context.get(None)
    if context is not None and context in SyncToAsync.context_to_thread_executor:
        SyncToAsync.context_to_thread_executor.pop(context).shutdown(wait=False)
