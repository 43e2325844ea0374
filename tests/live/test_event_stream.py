"""Gaps in an event stream whose client cannot request a sync, with frames in any order."""

from __future__ import annotations

import asyncio
import json

import pytest

from agents.messages import Json
from chat.live.event_stream import EventStream
from chat.live.socket_queue import SocketQueue
from chat.models import SessionRole, User
from tests.support.socket import PATIENCE

FIRST = {"type": "text_delta", "revision": 1, "id": "m_1", "text": "Once"}


class Rows:
    """A replacement for a session's feed: `sync` sends the rows, and ends the stream after the `last` sync."""

    def __init__(self, last: int = 2, answers: list[Json] | None = None) -> None:
        self.synced = 0
        self._last = last
        self._answers = iter(answers or [])

    async def sync(self, socket_queue: SocketQueue, user: User, since: int, have: dict[str, Json] | None) -> None:
        await asyncio.wait_for(socket_queue.answered(), PATIENCE)
        self.synced += 1
        socket_queue.pause()
        answer = next(self._answers, None)
        socket_queue.release([encode(answer)] if answer else [], answer["revision"] if answer else since)
        if self.synced == self._last:
            socket_queue.leave()


def new_stream() -> EventStream:
    """Return a stream that is held until its first sync, as the hub leaves it."""
    stream = EventStream(User(pk=1), 0, SessionRole.VIEWER, None, "en", name="Ana")
    stream.pause()
    return stream


def encode(frame: Json) -> str:
    return json.dumps(frame, separators=(",", ":"))


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
    """LIVE-02: if a part of a text or an event is missing, the rows are read again."""
    stream, rows = new_stream(), Rows()
    pieces = stream.follow(rows)
    await anext(pieces)
    stream.put(encode(FIRST), 1)
    await anext(pieces)
    stream.put(encode(frame), frame.get("revision"))
    piece = await anext(pieces)
    assert (rows.synced, frame["type"] in piece) == ((2, False) if is_gap else (1, True))


async def test_event_that_the_client_has_is_not_sent_again() -> None:
    """LIVE-02: an event that was part of a sync is not sent again, because applying a text twice would double it."""
    stream, rows = new_stream(), Rows()
    pieces = stream.follow(rows)
    await anext(pieces)
    for frame, revision in ((FIRST, 1), (FIRST, 1), ({"type": "session_updated", "revision": 2}, 2)):
        stream.put(encode(frame), revision)
    piece = await anext(pieces)
    assert (piece.count("text_delta"), piece.count("session_updated"), rows.synced) == (1, 1, 1)


async def test_gap_in_front_of_an_answer_does_not_block_the_stream() -> None:
    """LIVE-02: the beacon finds the session ahead while later events wait behind a lost one, and the stream syncs."""
    answer: Json = {"type": "changes", "revision": 9, "messages": []}
    stream, rows = new_stream(), Rows(last=3, answers=[{**answer, "revision": 1}, answer])
    pieces = stream.follow(rows)
    await anext(pieces)
    await anext(pieces)
    waiting = asyncio.ensure_future(anext(pieces))
    await asyncio.sleep(0)
    stream.put(encode({"type": "session_updated", "revision": 5}), 5)
    stream.put_head(encode({"type": "head", "revision": 9}), 9)
    assert encode(answer) in await waiting
    assert rows.synced == 2
