"""What waits for one socket: in order, bounded, and never the wrong thing dropped."""

from __future__ import annotations

import asyncio

import pytest

from chat.live import socket_queue as socket_queues
from chat.live.socket_queue import SocketQueue

RESYNC = '{"type":"resync"}'


class Peer:
    """The other end: takes frames while `flowing` is set."""

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
        async with asyncio.timeout(5):
            while len(self.taken) < count:
                self.changed.clear()
                await self.changed.wait()
        return self.taken

    async def stuck(self) -> None:
        """Take one frame and no more."""
        self.flowing.clear()
        self.socket_queue.put("first")
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def closed(self) -> int:
        async with asyncio.timeout(5):
            while self.code is None:
                self.changed.clear()
                await self.changed.wait()
        return self.code


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_queues, "MOST_FRAMES", 3)
    monkeypatch.setattr(socket_queues, "MOST_CHARS", 100)


async def test_held_frames_follow_their_snapshot() -> None:
    """LIVE-02: subscribe, then read, then what came in the meantime, if it is newer."""
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
    """LIVE-02: answers stay: no one asks for them again."""
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
    """LIVE-02: a snapshot beyond the limit must not be dropped for it, and asked for again for ever."""
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
    """LIVE-02: what came while a long snapshot was read is bounded too."""
    peer = Peer()
    peer.socket_queue.pause()
    for number in range(5):
        peer.socket_queue.put(f"live {number}")
    peer.socket_queue.release(["snapshot"], 1)
    assert await peer.has(3) == ["snapshot", RESYNC, "live 4"]


async def test_peer_that_takes_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-02: 4408, and the work that waits for room in the queue ends."""
    monkeypatch.setattr(socket_queues, "SEND_TIMEOUT", 0.01)
    peer = Peer()
    peer.flowing.clear()
    peer.socket_queue.answer("ack")
    await peer.socket_queue.answered()
    assert await peer.closed() == 4408


async def test_frame_is_late_by_its_own_time_and_not_by_that_of_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-02: one timer serves all frames; a quiet socket stays open when it ends, a stuck one does not."""
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
    """LIVE-02: a socket that was closed in the middle of a frame must not keep its task for ever."""
    monkeypatch.setattr(socket_queues, "SEND_TIMEOUT", 0.05)
    peer = Peer()
    await peer.stuck()
    peer.socket_queue.close(4429)
    async with asyncio.timeout(5):
        await peer.given_up.wait()
    assert peer.code == 4429


async def test_large_frame_has_as_long_as_a_slow_line_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-02: it was closed, synchronised with the same frame, and closed again."""
    monkeypatch.setattr(socket_queues, "SEND_TIMEOUT", 0.0)
    peer = Peer()
    peer.flowing.clear()
    peer.socket_queue.answer("x" * 100 * socket_queues.SLOWEST_CHARS_PER_SECOND)
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # the time of a small frame is over
    peer.flowing.set()
    await peer.has(1)


async def test_socket_that_fails_is_closed_and_forgotten() -> None:
    """LIVE-02: a frame that cannot be sent must not leave a socket open that hears nothing."""
    peer = Peer()
    peer.failure = ValueError("no UTF-8")
    peer.socket_queue.put("frame")
    assert await peer.closed() == 1011
    peer.failure = None
    peer.socket_queue.put("another")
    await asyncio.sleep(0)
    assert peer.taken == []


async def test_close_sends_nothing_more() -> None:
    """LIVE-06: what waits is not sent to a user who lost access."""
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
    """LIVE-02: a client cannot pile up snapshots here by asking without reading."""
    peer = Peer()
    await peer.socket_queue.answered()
    await peer.stuck()
    peer.socket_queue.release(["snapshot"], 1)
    waiting = asyncio.ensure_future(peer.socket_queue.answered())
    await asyncio.sleep(0)
    assert not waiting.done()
    peer.flowing.set()
    await asyncio.wait_for(waiting, 5)
    assert peer.taken == ["first", "snapshot"]


async def test_frames_are_handed_to_a_connection_that_takes_them() -> None:
    """LIVE-01: nothing is queued for a connection with room; what it does not take is sent after what it took."""
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
    peer.socket_queue.put("4")  # waits behind the third one
    assert taken == ["1", "2"]
    assert await peer.has(2) == ["3", "4"]
    await peer.socket_queue.answered()
    peer.socket_queue.put("5")
    assert taken == ["1", "2", "5"]
