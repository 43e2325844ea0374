"""A session's events as server-sent events."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import StreamingHttpResponse
from django.utils.translation import get_language
from ninja import Header, Query, Router, Schema
from pydantic import Field

from chat.access import session_for
from chat.api.auth import ApiRequest
from chat.api.schemas import EVENT, SCHEMAS
from chat.api.streams import credential_of, require_stream_slot, stream_response
from chat.commands import Number
from chat.live.event_stream import EventStream
from chat.services.messages.senders import sender_in

router = Router(tags=["Events"])
LastEvent = Annotated[
    Number | None,
    Header(
        alias="Last-Event-ID",
        description="The `id` of the last event that you have received, which is a revision of the session.",
    ),
]
STREAM: dict[int, dict[str, Any]] = {
    200: {
        "description": "A stream of server-sent events.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}
EVENTS: dict[int, dict[str, Any]] = {
    200: {
        "description": "Server-sent events. Each `data:` line is an `Event`, and each `id:` line is a revision.",
        "content": {
            "text/event-stream": {
                "schema": {
                    "type": "string",
                    "contentMediaType": "text/event-stream",
                    "contentSchema": {"$ref": f"{SCHEMAS}{EVENT}"},
                }
            }
        },
    }
}


class StreamQuery(Schema):
    since: Number | None = Field(
        None,
        description="A `revision` of the session. The stream begins with the changes after it. The header "
        "`Last-Event-ID` takes precedence.",
    )


@router.get(
    "/sessions/{session_id}/events",
    operation_id="streamEvents",
    summary="Stream the events of a session",
    openapi_extra={"responses": EVENTS},
)
def stream_events(
    request: ApiRequest, session_id: str, query: Query[StreamQuery], last_event: LastEvent = None
) -> StreamingHttpResponse:
    """Stream the events of a session as server-sent events, with one JSON object in each `data:` line.

    The events are the same as on the WebSocket. docs/protocol.md, section 1, contains the rules for applying them.
    """
    session, role = session_for(request.user, session_id)
    require_stream_slot(request.user.pk)
    since = (last_event if last_event is not None else query.since) or 0
    language, name = get_language() or "en", sender_in(session, request.user)
    stream = EventStream(request.user, since, role, credential_of(request), language, name=name)
    return stream_response(session.pk, stream, stream.follow)
