"""What a stream of events sends again for a client that cannot ask, with frames that come in any way."""

from __future__ import annotations

import json

import pytest

from agents.messages import Json
from chat.live.event_stream import EventStream
from chat.live.socket_queue import SocketQueue
from chat.models import SessionRole, User

FIRST = {"type": "text_delta", "revision": 1, "id": "m_1", "text": "Once"}


class Rows:
    """Stands for a session's feed: its `sync` sends what the rows say, and ends the stream the second time."""

    def __init__(self) -> None:
        self.synced = 0

    async def sync(self, socket_queue: SocketQueue, user: User, since: int, have: dict[str, Json] | None) -> None:
        self.synced += 1
        socket_queue.pause()
        socket_queue.release([], since)
        if self.synced > 1:
            socket_queue.leave()


@pytest.mark.parametrize(
    ("frame", "is_gap"),
    [
        ({"type": "text_delta", "id": "m_1", "offset": 4, "text": "!"}, False),
        ({"type": "text_delta", "id": "m_1", "offset": 5, "text": "!"}, True),
        ({"type": "text_delta", "id": "m_2", "offset": 0, "text": "!"}, True),
        ({"type": "response_done", "id": "m_1", "length": 4}, False),
        ({"type": "response_done", "id": "m_1", "length": 5}, True),
        ({"type": "message_removed", "revision": 3, "id": "m_1"}, True),
    ],
)
async def test_gaps_make_the_stream_sync(frame: Json, is_gap: bool) -> None:
    """LIVE-02: where a part of a text or an event is missing, the rows are read again."""
    stream, rows = EventStream(User(pk=1), 0, SessionRole.VIEWER, None, "en"), Rows()
    pieces = stream.follow(rows)
    await anext(pieces)
    stream.put(json.dumps(FIRST, separators=(",", ":")), 1)
    await anext(pieces)
    stream.put(json.dumps(frame, separators=(",", ":")), frame.get("revision"))
    told = await anext(pieces)
    assert (rows.synced, frame["type"] in told) == ((2, False) if is_gap else (1, True))


async def test_event_that_the_client_has_is_not_sent_again() -> None:
    """LIVE-02: what the rows have told may still come from the layer; folded twice, a text would be doubled."""
    stream, rows = EventStream(User(pk=1), 0, SessionRole.VIEWER, None, "en"), Rows()
    pieces = stream.follow(rows)
    await anext(pieces)
    for frame, revision in ((FIRST, 1), (FIRST, 1), ({"type": "session_updated", "revision": 2}, 2)):
        stream.put(json.dumps(frame, separators=(",", ":")), revision)
    told = await anext(pieces)
    assert (told.count("text_delta"), told.count("session_updated"), rows.synced) == (1, 1, 1)
