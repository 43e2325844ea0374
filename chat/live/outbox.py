"""What waits to be sent to one socket: bounded, in order, and written by a task that exists only while it is needed."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from chat.models import Role

logger = logging.getLogger(__name__)

Face = Literal["events", "page"]
MOST_FRAMES = 1000
MOST_CHARS = 8_000_000
SEND_TIMEOUT = 10.0
RESYNC = {"events": '{"type":"resync"}', "page": '{"op":"resync"}'}

# Close codes (docs/protocol.md).
SIGN_IN_AGAIN = 4401
NO_ACCESS = 4403
NO_SUCH_SESSION = 4404
TOO_SLOW = 4408
TOO_MANY_FRAMES = 4429


class Outbox:
    """One viewer's socket as the hub sees it.

    A viewer that falls behind by too much loses what waits and is told to `resync` once; one that takes nothing for
    ten seconds is closed as too slow.
    """

    def __init__(
        self,
        face: Face,
        send: Callable[[str], Coroutine[Any, Any, None]],
        close: Callable[[int], Coroutine[Any, Any, None]],
        *,
        user_id: int,
        session_key: str,
        role: Role,
    ) -> None:
        self.face = face
        self.user_id = user_id
        self.session_key = session_key
        self.role = role
        self.closed = False
        self._send = send
        self._close = close
        self._frames: deque[str] = deque()
        self._chars = 0
        self._held: list[str] | None = None
        self._task: asyncio.Task[None] | None = None

    def put(self, frame: str) -> None:
        """Queue a frame of the live stream."""
        if self.closed:
            return
        if self._held is not None:
            self._held.append(frame)
            if len(self._held) <= MOST_FRAMES:
                return
            self._held = None
            self._overflow()
            return
        self._queue(frame)

    def answer(self, frame: str) -> None:
        """Queue an answer to a command; it does not wait for a snapshot."""
        if not self.closed:
            self._queue(frame)

    def hold(self) -> None:
        """Keep live frames back until the snapshot that goes before them is there."""
        if self._held is None:
            self._held = []

    def release(self, frames: list[str]) -> None:
        """Send the snapshot's frames, then what was held."""
        held, self._held = self._held or [], None
        self._frames.extend(frames)  # however large: it is what was asked for
        self._chars += sum(map(len, frames))
        for frame in held:
            self._queue(frame)
        self._start()

    def close(self, code: int) -> None:
        """Close the socket, after what waits if it is not already stuck."""
        if not self.closed:
            self.closed = True
            self._frames.clear()
            task = asyncio.get_running_loop().create_task(self._close(code))
            task.add_done_callback(_quiet)

    def _queue(self, frame: str) -> None:
        self._frames.append(frame)
        self._chars += len(frame)
        if len(self._frames) > MOST_FRAMES or self._chars > MOST_CHARS:
            self._overflow()
        self._start()

    def _start(self) -> None:
        if self._task is None and self._frames and not self.closed:
            self._task = asyncio.get_running_loop().create_task(self._drain())

    def _overflow(self) -> None:
        self._frames.clear()
        self._frames.append(RESYNC[self.face])
        self._chars = 0

    async def _drain(self) -> None:
        try:
            while self._frames and not self.closed:
                frame = self._frames.popleft()
                self._chars -= len(frame)
                async with asyncio.timeout(SEND_TIMEOUT):
                    await self._send(frame)
        except TimeoutError:
            self.close(TOO_SLOW)
        except Exception as error:  # the socket has gone; its consumer is told by the server
            logger.debug("A socket took no more: %s", error)
            self.closed = True
        finally:
            self._task = None
            self._chars = max(0, self._chars)


def _quiet(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()
