"""A session's events as server-sent events: the frames of the events socket, for clients that only read."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator
from typing import Protocol

from django.db import DatabaseError, InterfaceError

from agents.messages import Json
from chat.errors import NoSuchSession
from chat.live import step_stream
from chat.live.credentials import Credential
from chat.live.socket_queue import SocketQueue, Waiting
from chat.models import MessageStatus, SessionRole, User

logger = logging.getLogger(__name__)

# The frames that add to texts, and those after which texts do not grow any more.
OF_TEXTS = re.compile(r'\{"type":"(?:text_delta|reasoning_delta|response_done|changes|turn_done)"')


class Source(Protocol):
    """The part of a session's feed that a stream needs."""

    async def sync(self, socket_queue: SocketQueue, user: User, since: int, have: dict[str, Json] | None) -> None: ...


class EventStream(SocketQueue):
    """One client. It gets the frames of the events socket as strings, as fast as it reads them.

    The client cannot send `sync`, so the stream does it for the client: at the beginning, from the client's revision,
    and whenever an event or a part of a text is missing or the client was too slow. Each `id:` is the revision that the
    client has reached. `name` is the user's name in the session (`sender_in`), which other users see.
    """

    over_http = True

    def __init__(
        self,
        user: User,
        since: int,
        role: SessionRole,
        credential: Credential | None,
        language: str,
        *,
        name: str,
    ) -> None:
        super().__init__(
            "events",
            _never,
            _never,
            user_id=user.pk,
            credential=credential,
            name=name,
            language=language,
            role=role,
        )
        self._user = user
        self._since = since
        self._is_behind = True
        self._news = asyncio.Event()
        # The length of each growing text that the client has.
        self._lengths: dict[str, int] = {}

    def put_head(self, frame: str, revision: int) -> None:
        """Sync if the session's revision is newer than what the stream has sent and queued."""
        self._request_sync()

    def close(self, code: int) -> None:
        """End the stream. When the client reconnects and is refused, it gets the reason."""
        self.leave()

    def leave(self) -> None:
        super().leave()
        self._news.set()

    async def follow(self, source: Source) -> AsyncIterator[str]:
        """Yield the changes since the client's revision, then new events, until the stream is closed."""
        yield step_stream.OPENING
        while not self.closed:
            self._news.clear()
            # A sync starts only when the queue is empty. Otherwise a gap in frames before its answer would start
            # another sync, and that one would wait forever for the first answer to be taken from the queue.
            while piece := self._take():
                yield piece
            if self._is_behind:
                self._is_behind = False
                await self._sync(source)
            elif not await self._wait_for_frames():
                yield step_stream.BEAT
        yield step_stream.BYE

    async def _sync(self, source: Source) -> None:
        try:
            await source.sync(self, self._user, self._since, None)
        except NoSuchSession:
            self.leave()
        except (DatabaseError, InterfaceError) as error:  # the client reconnects
            logger.warning("Closing an event stream, because the database is not available: %s", error)
            self.leave()

    async def _wait_for_frames(self) -> bool:
        """Wait for frames; return False if none has arrived within HEARTBEAT seconds."""
        try:
            async with asyncio.timeout(step_stream.HEARTBEAT):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _take(self) -> str:
        """Return the next frames as events, up to about MAX_PIECE_SIZE characters; return "" if none waits."""
        piece = ""
        while self._frames and len(piece) < step_stream.MAX_PIECE_SIZE:
            waiting = self._next()
            self._note_sent(waiting)
            if not waiting.is_answer and waiting.revision is not None and waiting.revision <= self._since:
                continue
            if self._is_gap(waiting):
                self._drop_live()
                break
            if waiting.revision is not None:
                self._since = waiting.revision
                piece += f"id: {waiting.revision}\n"
            piece += f"data: {waiting.frame}\n\n"
        return piece

    def _is_gap(self, waiting: Waiting) -> bool:
        """Return whether something is missing before a frame. If not, note what the client has after it."""
        if not waiting.is_answer and waiting.revision is not None and waiting.revision > self._since + 1:
            return True
        if OF_TEXTS.match(waiting.frame) is None:
            return False
        event = json.loads(waiting.frame)
        match event["type"]:
            case "changes":
                growing = (each for each in event["messages"] if each["status"] == MessageStatus.STREAMING)
                self._lengths.update({each["id"]: each["offset"] + len(each["text"]) for each in growing})
            case "turn_done":
                self._lengths.clear()
            case "response_done":
                return bool(self._lengths.get(event["id"], event["length"]) != event["length"])
            case _ if "revision" in event:
                self._lengths[event["id"]] = len(event["text"])
            case _:
                known = self._lengths.get(event["id"], -1)
                self._lengths[event["id"]] = max(known, event["offset"] + len(event["text"]))
                return bool(event["offset"] > known)
        return False

    def _request_sync(self) -> None:
        """Make `follow` sync. Frames that are taken before the sync are found to have a gap before them."""
        self._is_behind = True
        self._news.set()

    def _start(self) -> None:
        """Wake `follow`, which takes the frames. A socket would start a task that sends them."""
        self._news.set()


async def _never(value: object) -> None:
    """Replace a socket's `send` and `close`, which a stream does not use."""
    raise AssertionError("a stream is read, not written to")
