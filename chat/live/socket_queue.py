"""What waits to be sent to one socket: bounded, in order, and written by a task that exists only while frames wait."""

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

MOST_FRAMES = 1000
MOST_CHARS = 8_000_000
SEND_TIMEOUT = 10.0
# A large frame has more time: a slow line takes at least so many characters a second.
SLOWEST_CHARS_PER_SECOND = 8 * 1024
RELOAD = '{"op":"reload"}'
RESYNC = {"events": '{"type":"resync"}', "page": '{"op":"resync"}'}


class Waiting(NamedTuple):
    """A frame on its way; `asked` for: an answer, which is never dropped. `revision`: what a client has with it."""

    frame: str
    asked: bool
    revision: int | None = None


def takes_nothing(frame: str) -> bool:
    """Refuse a frame: the default of `send_now`."""
    return False


class SocketQueue(Subscriber):
    """One viewer's socket as the hub sees it.

    A viewer that falls behind by too much loses what waits of the live stream and gets one `resync`; one that
    takes a frame too slowly is closed. Answers are bounded by who asks: see `answered`.
    `short_frames`: a page that reads the short form of deltas.
    `synced` is the revision of its last snapshot: it does not need earlier events. `send_now` hands a frame to the
    connection, and returns False if that takes nothing at the moment: then a task sends it by `send`.
    """

    def __init__(
        self,
        protocol: Protocol,
        send: Callable[[str], Coroutine[Any, Any, None]],
        close: Callable[[int], Coroutine[Any, Any, None]],
        *,
        user_id: int,
        send_now: Callable[[str], bool] = takes_nothing,
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
        self._asked = 0
        self._answered = asyncio.Event()
        self._answered.set()
        self._task: asyncio.Task[None] | None = None
        # The loop's time at which the frame that is being sent is late; None while nothing is sent.
        self._late_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    def put(self, frame: str, revision: int | None = None) -> None:
        """Queue a frame of the live stream; a durable one has the revision that it made."""
        if self.closed:
            return
        if self._held is None:
            self._queue(frame, revision)
            return
        self._held.append((frame, revision))
        self._held_chars += len(frame)
        if _too_much(len(self._held), self._held_chars):
            self._held.clear()
            self._held_chars = 0
            self._missed = True

    def put_head(self, frame: str, revision: int) -> None:
        """Queue the news of how far the session is; the client asks for what it lacks."""
        self.put(frame, revision)

    def answer(self, frame: str) -> None:
        """Queue an answer to a command; it does not wait for a snapshot."""
        if not self.closed:
            self._append(frame, asked=True)
            self._start()

    async def answered(self) -> None:
        """Wait until the socket has taken all answers: who asks for much does not pile it up here."""
        await self._answered.wait()

    def pause(self) -> None:
        """Keep live frames back until the snapshot that goes before them is there."""
        if self._held is None:
            self._held = []
            self._held_chars = 0

    def release(self, frames: list[str], synced: int) -> None:
        """Send the snapshot's frames, then what was held and is newer."""
        held, self._held = self._held or [], None
        if self.closed:
            return
        self.synced = synced or self.synced
        for number, frame in enumerate(frames, 1):  # however large: it is what was asked for
            self._append(frame, asked=True, revision=synced if number == len(frames) else None)
        if self._missed:
            self._missed = False
            self._ask_to_sync()
        for frame, revision in held:
            self._queue(frame, revision)
        self._start()

    def set_role(self, role: SessionRole | None) -> None:
        """Follow a change of the role: the page must not offer what the user may not do, or hide what they may."""
        before = self.role
        super().set_role(role)
        if before not in (None, role) and self.protocol == "page":
            self.answer(RELOAD)

    def close(self, code: int) -> None:
        """Close the socket at once; what waits is not sent any more."""
        if not self.closed:
            if code == TOO_SLOW:
                metrics.slow_sockets.inc()
            self.leave()
            self._closing = asyncio.get_running_loop().create_task(self._close(code))
            self._closing.add_done_callback(_quiet)

    def leave(self) -> None:
        """Forget what waits: the socket has gone."""
        self.closed = True
        self._frames.clear()
        self._held = None
        self._answered.set()
        if self._timer is not None and self._late_at is None:
            self._timer.cancel()  # while a frame is being sent, the timer is what ends that

    def _queue(self, frame: str, revision: int | None) -> None:
        if revision is not None and revision <= self.synced:
            return
        self._append(frame, asked=False, revision=revision)
        if _too_much(self._live_frames, self._live_chars):
            self._drop_live()
        self._start()

    def _append(self, frame: str, *, asked: bool, revision: int | None = None) -> None:
        self._frames.append(Waiting(frame, asked, revision))
        if asked:
            self._asked += 1
            self._answered.clear()
        else:
            self._live_frames += 1
            self._live_chars += len(frame)

    def _drop_live(self) -> None:
        kept = [waiting for waiting in self._frames if waiting.asked]
        self._frames.clear()
        self._live_frames = self._live_chars = 0
        self._frames.extend(kept)
        self._ask_to_sync()

    def _ask_to_sync(self) -> None:
        """Tell the client that frames were dropped."""
        self._append(RESYNC[self.protocol], asked=True)

    def _next(self) -> Waiting:
        waiting = self._frames.popleft()
        if not waiting.asked:
            self._live_frames -= 1
            self._live_chars -= len(waiting.frame)
        return waiting

    def _sent(self, waiting: Waiting) -> None:
        if waiting.asked:
            self._asked -= 1
            if not self._asked:
                self._answered.set()

    def _start(self) -> None:
        """Send what waits, as far as the connection takes it at once."""
        if self._task is not None or self.closed:
            return
        while self._frames and self._send_now(self._frames[0].frame):
            self._sent(self._next())
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
                self._sent(waiting)
        except Exception as error:  # most often the socket has gone, and closing it does no harm
            logger.debug("A socket took no more: %s", error)
            self.close(BROKEN)
        finally:
            self._task = self._late_at = None

    def _watch(self, until: float) -> None:
        """Schedule the next check. One timer serves many frames: a timeout around each took 14 % of a stream's CPU."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(until, self._look)

    def _look(self) -> None:
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
    return frames > MOST_FRAMES or chars > MOST_CHARS


def _quiet(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()
