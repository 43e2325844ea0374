"""The outgoing frames of one socket: a bounded queue, sent in order by a task that exists only while frames wait."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from chat import metrics
from chat.live.credentials import Credential
from chat.live.subscriber import BROKEN, TOO_SLOW, Protocol, Subscriber
from chat.models import SessionRole

logger = logging.getLogger(__name__)

MAX_FRAMES = 1000
MAX_CHARS = 8_000_000
SEND_TIMEOUT = 10.0
# A large frame has more time, because a slow connection must take at least this many characters per second.
SLOWEST_CHARS_PER_SECOND = 8 * 1024
RELOAD = '{"op":"reload"}'
RESYNC = {"events": '{"type":"resync"}', "page": '{"op":"resync"}'}


class SharedFrame(str):
    """The text of a frame that is encoded only once for all sockets that get it; `receivers` is their number."""

    __slots__ = ("_encoded", "receivers")

    _encoded: dict[object, bytes]
    receivers: int

    @classmethod
    def of(cls, text: str, receivers: int) -> SharedFrame:
        frame = cls(text)
        frame._encoded = {}
        frame.receivers = receivers
        return frame

    def encoded(self, form: object, encode: Callable[[str], bytes]) -> bytes:
        """Return the frame in one form. For the first socket, call `encode` to make it."""
        data = self._encoded.get(form)
        if data is None:
            data = self._encoded[form] = encode(self)
        return data


class Waiting(NamedTuple):
    """A frame that waits to be sent.

    `is_answer`: it is an answer or a `resync`, which is never dropped. `revision` is the client's revision once it has
    the frame.
    """

    frame: str
    is_answer: bool
    revision: int | None = None


def never_sends(frame: str) -> bool:
    """Refuse a frame: the default of `send_now`."""
    return False


class SocketQueue(Subscriber):
    """One viewer's socket as the hub sees it.

    If a viewer falls too far behind, its waiting live frames are dropped and it gets one `resync`. If it takes a frame
    too slowly, the socket is closed. The number of answers has no limit here, because callers wait with `answered`.
    `synced` is the revision of its last snapshot: it does not need earlier events. `short_frames` is set for a page
    that reads the short form of deltas. `send_now` hands a frame to the connection. If that is full, `send_now` returns
    False, and a task calls `send`.
    """

    def __init__(
        self,
        protocol: Protocol,
        send: Callable[[str], Coroutine[Any, Any, None]],
        close: Callable[[int], Coroutine[Any, Any, None]],
        *,
        user_id: int,
        send_now: Callable[[str], bool] = never_sends,
        credential: Credential | None = None,
        name: str = "",
        language: str = "en",
        role: SessionRole | None = None,
    ) -> None:
        super().__init__(protocol, user_id=user_id, credential=credential, name=name, language=language, role=role)
        self.synced = 0
        self.short_frames = False
        self._send = send
        self._send_now = send_now
        self._close = close
        self._frames: deque[Waiting] = deque()
        self._live_frames = 0
        self._live_chars = 0
        self._held: list[tuple[str, int | None]] | None = None
        self._held_chars = 0
        self._missed = False
        self._answers = 0
        self._answered = asyncio.Event()
        self._answered.set()
        self._task: asyncio.Task[None] | None = None
        # The time of the loop at which the current frame is late; None while nothing is being sent.
        self._late_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    def put(self, frame: str, revision: int | None = None) -> None:
        """Queue a frame of the live stream. A durable one has the revision that it leads to."""
        if self.closed:
            return
        if self._held is not None:
            self._held.append((frame, revision))
            self._held_chars += len(frame)
            if _too_much(len(self._held), self._held_chars):
                self._held.clear()
                self._held_chars = 0
                self._missed = True
            return
        if revision is not None and revision <= self.synced:
            return
        self._append(frame, is_answer=False, revision=revision)
        if _too_much(self._live_frames, self._live_chars):
            self._drop_live()
        self._start()

    def put_head(self, frame: str, revision: int) -> None:
        """Queue the session's current revision. The client requests what it lacks."""
        self.put(frame, revision)

    def answer(self, frame: str) -> None:
        """Queue an answer to a command. It does not wait for a snapshot."""
        if not self.closed:
            self._append(frame, is_answer=True)
            self._start()

    async def answered(self) -> None:
        """Wait until the socket has taken all answers, so that a client with many requests does not fill the queue."""
        await self._answered.wait()

    def pause(self) -> None:
        """Hold live frames back until the snapshot before them has been queued."""
        if self._held is None:
            self._held = []
            self._held_chars = 0

    def release(self, frames: list[str], synced: int) -> None:
        """Send the snapshot's frames, then the held frames that are newer."""
        held, self._held = self._held or [], None
        if self.closed:
            return
        self.synced = synced or self.synced
        for number, frame in enumerate(frames, 1):  # of any size, because the client has requested them
            self._append(frame, is_answer=True, revision=synced if number == len(frames) else None)
        if self._missed:
            self._missed = False
            self._request_sync()
        for frame, revision in held:
            self.put(frame, revision)
        self._start()

    def set_role(self, role: SessionRole | None) -> None:
        """Set the user's role. If it has changed, reload the page, so that it shows what the user may do now."""
        before = self.role
        super().set_role(role)
        if before not in (None, role) and self.protocol == "page":
            self.answer(RELOAD)

    def close(self, code: int) -> None:
        """Close the socket immediately. Frames that wait are not sent any more."""
        if not self.closed:
            if code == TOO_SLOW:
                metrics.slow_sockets.inc()
            self.leave()
            self._closing = asyncio.get_running_loop().create_task(self._close(code))
            self._closing.add_done_callback(_quiet)

    def leave(self) -> None:
        """Discard the frames that wait, because the socket has disconnected."""
        self.closed = True
        self._frames.clear()
        self._held = None
        self._answered.set()
        if self._timer is not None and self._late_at is None:
            self._timer.cancel()  # while a frame is being sent, the timer must still be able to end that

    def _append(self, frame: str, *, is_answer: bool, revision: int | None = None) -> None:
        self._frames.append(Waiting(frame, is_answer, revision))
        if is_answer:
            self._answers += 1
            self._answered.clear()
        else:
            self._live_frames += 1
            self._live_chars += len(frame)

    def _drop_live(self) -> None:
        kept = [waiting for waiting in self._frames if waiting.is_answer]
        self._frames.clear()
        self._live_frames = self._live_chars = 0
        self._frames.extend(kept)
        self._request_sync()

    def _request_sync(self) -> None:
        """Notify the client that frames were dropped, so that it syncs."""
        self._append(RESYNC[self.protocol], is_answer=True)

    def _next(self) -> Waiting:
        waiting = self._frames.popleft()
        if not waiting.is_answer:
            self._live_frames -= 1
            self._live_chars -= len(waiting.frame)
        return waiting

    def _note_sent(self, waiting: Waiting) -> None:
        if waiting.is_answer:
            self._answers -= 1
            if not self._answers:
                self._answered.set()

    def _start(self) -> None:
        """Send the frames that wait, as far as the connection takes them immediately. Leave the rest to a task."""
        if self._task is not None or self.closed:
            return
        while self._frames and self._send_now(self._frames[0].frame):
            self._note_sent(self._next())
        if self._frames:
            self._task = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._frames:
                waiting = self._next()
                self._late_at = loop.time() + SEND_TIMEOUT + len(waiting.frame) / SLOWEST_CHARS_PER_SECOND
                if self._timer is None or self._timer.when() > self._late_at:
                    self._watch(self._late_at)
                await self._send(waiting.frame)
                self._note_sent(waiting)
        except Exception as error:  # usually the socket has disconnected, and closing it does no harm
            logger.debug("A socket accepted no more data: %s", error)
            self.close(BROKEN)
        finally:
            self._task = self._late_at = None

    def _watch(self, until: float) -> None:
        """Schedule the next check.

        One timer serves many frames: a timeout around each took 14 % of a stream's CPU time.
        """
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(until, self._check_late)

    def _check_late(self) -> None:
        self._timer = None
        if self._late_at is None:
            return
        if asyncio.get_running_loop().time() < self._late_at:
            self._watch(self._late_at)
            return
        if self._task is not None:
            self._task.cancel()
        self.close(TOO_SLOW)


def _too_much(frames: int, chars: int) -> bool:
    return frames > MAX_FRAMES or chars > MAX_CHARS


def _quiet(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()
