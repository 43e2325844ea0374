"""The events of a session as server-sent events: the frames of the events socket, for clients that only listen."""

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

# The frames by which texts grow, and those after which they do not.
OF_TEXTS = re.compile(r'\{"type":"(?:text_delta|reasoning_delta|response_done|changes|turn_done)"')


class Source(Protocol):
    """The session's feed, as far as a stream needs it."""

    async def sync(self, socket_queue: SocketQueue, user: User, since: int, have: dict[str, Json] | None) -> None: ...


class EventStream(SocketQueue):
    """One client. It gets the strings that sockets get, when it can take them.

    The client cannot ask for a sync, so the stream keeps the rules of a client in its place: it syncs at the beginning,
    from the client's revision, and whenever an event or a part of a text is missing or the client was too slow. Each
    `id:` is the revision that the client has reached.
    """

    over_http = True

    def __init__(self, user: User, since: int, role: SessionRole, credential: Credential | None, language: str) -> None:
        super().__init__(
            "events",
            _never,
            _never,
            user_id=user.pk,
            credential=credential,
            name=user.sender,
            language=language,
            role=role,
        )
        self._user = user
        self._since = since
        self._is_behind = True
        self._news = asyncio.Event()
        # How much of each growing text the client has.
        self._lengths: dict[str, int] = {}

    def put_head(self, frame: str, revision: int) -> None:
        """Sync if the session is further than what the stream has sent and holds."""
        self._ask_to_sync()

    def close(self, code: int) -> None:
        """End the stream. The client reconnects and then gets the reason if it is refused."""
        self.leave()

    def leave(self) -> None:
        super().leave()
        self._news.set()

    async def follow(self, source: Source) -> AsyncIterator[str]:
        """Yield what changed since the client's revision, then what happens, until the stream is closed."""
        yield step_stream.OPENING
        while not self.closed:
            self._news.clear()
            # The queue is empty when a sync starts. A gap found in frames in front of its answer would start the next
            # sync, which waits until that answer has been taken: forever.
            while piece := self._take():
                yield piece
            if self._is_behind:
                self._is_behind = False
                await self._sync(source)
            elif not await self._notified():
                yield step_stream.BEAT
        yield step_stream.BYE

    async def _sync(self, source: Source) -> None:
        try:
            await source.sync(self, self._user, self._since, None)
        except NoSuchSession:
            self.leave()
        except (DatabaseError, InterfaceError) as error:  # the client comes again
            logger.warning("A stream of events ends, the database cannot be reached: %s", error)
            self.leave()

    async def _notified(self) -> bool:
        """Wait for frames; return False when there were none for a while."""
        try:
            async with asyncio.timeout(step_stream.HEARTBEAT):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _take(self) -> str:
        """Return the next frames as events, up to the size of a piece; "" when there are none."""
        piece = ""
        while self._frames and len(piece) < step_stream.LARGEST_PIECE:
            waiting = self._next()
            self._sent(waiting)
            if not waiting.asked and waiting.revision is not None and waiting.revision <= self._since:
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
        """Return whether something is missing between what the client has and a frame; else note what it has then."""
        if not waiting.asked and waiting.revision is not None and waiting.revision > self._since + 1:
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

    def _ask_to_sync(self) -> None:
        """Let `follow` sync; frames that come before it does are found to have a gap before them."""
        self._is_behind = True
        self._news.set()

    def _start(self) -> None:
        """Wake `follow`, which takes the frames; a socket starts a task that sends them."""
        self._news.set()


async def _never(value: object) -> None:
    """Stand for a socket's `send` and `close`, which a stream does not have."""
    raise AssertionError("a stream is read, not written to")
