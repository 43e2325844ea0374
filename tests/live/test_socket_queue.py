"""The queue of one socket: ordered and bounded, and only live frames are dropped."""

from __future__ import annotations

import asyncio

import pytest

from chat.live import socket_queue as socket_queues
from chat.live.socket_queue import SocketQueue

RESYNC = '{"type":"resync"}'


class Peer:
    """The client of a socket, which takes frames while `flowing` is set."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.code: int | None = None
        self.flowing = asyncio.Event()
        self.flowing.set()
        self.failure: Exception | None = None
        self.given_up = asyncio.Event()
        self.changed = asyncio.Event()
        self.socket_queue = SocketQueue("events", self._take, self._close, user_id=1)

    async def _take(self, frame: str) -> None:
        if self.failure is not None:
            raise self.failure
        try:
            await self.flowing.wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        self.taken.append(frame)
        self.changed.set()

    async def _close(self, code: int) -> None:
        self.code = code
        self.changed.set()

    async def has(self, count: int) -> list[str]:
        async with asyncio.timeout(20):
            while len(self.taken) < count:
                self.changed.clear()
                await self.changed.wait()
        return self.taken

    async def stuck(self) -> None:
        """Take one frame, then none."""
        self.flowing.clear()
        self.socket_queue.put("first")
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def closed(self) -> int:
        async with asyncio.timeout(20):
            while self.code is None:
                self.changed.clear()
                await self.changed.wait()
        return self.code


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_queues, "MAX_FRAMES", 3)
    monkeypatch.setattr(socket_queues, "MAX_CHARS", 100)


async def test_held_frames_follow_their_snapshot() -> None:
    """LIVE-02: frames that arrive while the snapshot is read follow it if they are newer."""
    peer = Peer()
    peer.socket_queue.pause()
    peer.socket_queue.put("old", 4)
    peer.socket_queue.put("hint")
    peer.socket_queue.put("new", 6)
    peer.socket_queue.answer("ack")
    peer.socket_queue.release(["snapshot"], 5)
    peer.socket_queue.put("older still", 3)
    peer.socket_queue.put("newer", 7)
    assert await peer.has(5) == ["ack", "snapshot", "hint", "new", "newer"]


@pytest.mark.usefixtures("_small")
async def test_overflow_drops_live_frames_and_says_so() -> None:
    """LIVE-02: an overflow drops live frames and reports it.

    Answers are kept, because no client requests them again.
    """
    peer = Peer()
    await peer.stuck()
    peer.socket_queue.answer("ack")
    for number in range(4):
        peer.socket_queue.put(f"live {number}")
    peer.socket_queue.put("live after")
    peer.flowing.set()
    assert await peer.has(4) == ["first", "ack", RESYNC, "live after"]


@pytest.mark.usefixtures("_small")
async def test_large_snapshot_is_sent_before_many_later_frames() -> None:
    """LIVE-02: a snapshot beyond the limit is sent, because dropping it would make the client request it again
    endlessly."""
    peer = Peer()
    await peer.stuck()
    peer.socket_queue.pause()
    snapshot = ["s" * 90] * 9
    peer.socket_queue.release(snapshot, 1)
    peer.socket_queue.put("live")
    peer.flowing.set()
    assert await peer.has(11) == ["first", *snapshot, "live"]


@pytest.mark.usefixtures("_small")
async def test_too_much_held_is_dropped_and_said_after_the_snapshot() -> None:
    """LIVE-02: frames that arrive while a long snapshot is read are bounded too, and the drop is reported after the
    snapshot."""
    peer = Peer()
    peer.socket_queue.pause()
    for number in range(5):
        peer.socket_queue.put(f"live {number}")
    peer.socket_queue.release(["snapshot"], 1)
    assert await peer.has(3) == ["snapshot", RESYNC, "live 4"]


async def test_peer_that_takes_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-02: a client that takes nothing is closed with 4408, and work that waits for room in its queue ends."""
    monkeypatch.setattr(socket_queues, "SEND_TIMEOUT", 0.01)
    peer = Peer()
    peer.flowing.clear()
    peer.socket_queue.answer("ack")
    await peer.socket_queue.answered()
    assert await peer.closed() == 4408


async def test_frame_is_late_by_its_own_time_and_not_by_that_of_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-02: one timer serves all frames: a quiet socket stays open when it fires, and a stuck one is closed."""
    monkeypatch.setattr(socket_queues, "SEND_TIMEOUT", 0.01)
    peer = Peer()
    peer.socket_queue.put("first")
    await peer.has(1)
    its_time_is_over = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, its_time_is_over.set)
    await its_time_is_over.wait()
    peer.socket_queue.put("second")
    await peer.has(2)
    peer.flowing.clear()
    peer.socket_queue.put("third")
    assert await peer.closed() == 4408
    assert peer.taken == ["first", "second"]


async def test_unread_frame_is_abandoned_also_after_the_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-02: a socket that closes in the middle of a frame ends its task."""
    monkeypatch.setattr(socket_queues, "SEND_TIMEOUT", 0.05)
    peer = Peer()
    await peer.stuck()
    peer.socket_queue.close(4429)
    async with asyncio.timeout(20):
        await peer.given_up.wait()
    assert peer.code == 4429


async def test_large_frame_has_as_long_as_a_slow_line_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-02: a large frame gets more time, because a slow line would otherwise be closed at each sync."""
    monkeypatch.setattr(socket_queues, "SEND_TIMEOUT", 0.0)
    peer = Peer()
    peer.flowing.clear()
    peer.socket_queue.answer("x" * 100 * socket_queues.SLOWEST_CHARS_PER_SECOND)
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # longer than a small frame may take
    peer.flowing.set()
    await peer.has(1)


async def test_socket_that_fails_is_closed_and_forgotten() -> None:
    """LIVE-02: a socket that cannot send is closed, so that no open socket is without events."""
    peer = Peer()
    peer.failure = ValueError("no UTF-8")
    peer.socket_queue.put("frame")
    assert await peer.closed() == 1011
    peer.failure = None
    peer.socket_queue.put("another")
    await asyncio.sleep(0)
    assert peer.taken == []


async def test_close_sends_nothing_more() -> None:
    """LIVE-06: waiting frames are not sent to a user who lost access."""
    peer = Peer()
    peer.socket_queue.put("secret")
    peer.socket_queue.pause()
    peer.socket_queue.close(4403)
    peer.socket_queue.close(4401)
    peer.socket_queue.release(["secret snapshot"], 1)
    peer.socket_queue.answer("secret answer")
    assert await peer.closed() == 4403
    assert peer.taken == []


async def test_answered_waits_for_all_answers() -> None:
    """LIVE-02: a client cannot queue more and more snapshots by requesting without reading."""
    peer = Peer()
    await peer.socket_queue.answered()
    await peer.stuck()
    peer.socket_queue.release(["snapshot"], 1)
    waiting = asyncio.ensure_future(peer.socket_queue.answered())
    await asyncio.sleep(0)
    assert not waiting.done()
    peer.flowing.set()
    await asyncio.wait_for(waiting, 20)
    assert peer.taken == ["first", "snapshot"]


async def test_frames_are_handed_to_a_connection_that_takes_them() -> None:
    """LIVE-01: a connection with room gets frames directly. Frames that it does not take follow in order."""
    taken: list[str] = []
    room = 2

    def send_now(frame: str) -> bool:
        if len(taken) == room:
            return False
        taken.append(frame)
        return True

    peer = Peer()
    peer.socket_queue = SocketQueue("events", peer._take, peer._close, user_id=1, send_now=send_now)
    peer.socket_queue.put("1")
    peer.socket_queue.answer("2")
    assert taken == ["1", "2"]
    peer.socket_queue.put("3")
    room = 9
    peer.socket_queue.put("4")  # queued behind the third one
    assert taken == ["1", "2"]
    assert await peer.has(2) == ["3", "4"]
    await peer.socket_queue.answered()
    peer.socket_queue.put("5")
    assert taken == ["1", "2", "5"]
