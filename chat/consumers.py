"""The sockets: they read commands, answer them, and hand the rest to the hub. Nothing waits for a run here."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, ClassVar

from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError, InterfaceError

from chat.commands import LONGEST_FRAME, AnyCommand, Known, Malformed, Ping, Request, Sync, parse
from chat.live.feed import Feed
from chat.live.hub import Hub
from chat.live.outbox import NO_ACCESS, NO_SUCH_SESSION, SIGN_IN_AGAIN, TOO_MANY_FRAMES, TRY_LATER, Face, Outbox
from chat.models import User
from chat.running import embedded
from chat.services.access import session_for
from chat.services.commands import execute
from chat.services.errors import NoSuchSession, Refused

logger = logging.getLogger(__name__)
Json = dict[str, Any]

# A client may send this many frames at once, and this many per second for long.
BURST = 120
RATE = 20.0
# A long frame counts as one more for each of so many characters.
CHARS_PER_FRAME = 200_000


@dataclass(slots=True)
class Viewer:
    """Somebody who was let in: what goes out to them, and their catching up."""

    outbox: Outbox
    feed: Feed
    wanted: Sync | None = None
    syncing: asyncio.Task[None] | None = None


class SessionConsumer(AsyncWebsocketConsumer):
    """One socket on one session. Subclasses differ only in the face that the hub shows them."""

    face: ClassVar[Face]
    # The hub listens for all sockets of the process: a channel for each would cost every other one time.
    channel_layer_alias = "none"

    user: User
    session_id: str
    hub: Hub
    viewer: Viewer | None = None
    allowance = float(BURST)
    allowed_at = 0.0

    async def connect(self) -> None:
        """Accept whoever may see the session; tell others by close code why not."""
        await self.accept()
        user = self.scope.get("user")
        self.session_id = self.scope["url_route"]["kwargs"]["session_id"]
        self.hub = embedded.hub()
        if not isinstance(user, User):
            await self.close(SIGN_IN_AGAIN)
            return
        self.user = user
        try:
            await self.hub.threads.run(session_for, user, self.session_id)
        except NoSuchSession:
            await self.close(NO_SUCH_SESSION)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("A socket could not be let in: %s", error)
            await self.close(TRY_LATER)
        else:
            key = self.scope["session"].session_key or ""
            outbox = Outbox(self.face, self._send_text, self._close_with, user_id=user.pk, session_key=key)
            self.viewer = Viewer(outbox, self.hub.watch(self.session_id, outbox))

    async def disconnect(self, code: int) -> None:
        if self.viewer is not None:
            if self.viewer.syncing is not None:
                self.viewer.syncing.cancel()
            self.viewer.outbox.leave()
            self.hub.unwatch(self.viewer.feed, self.viewer.outbox)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Carry out one command and answer it; whatever is wrong with it, the socket stays open."""
        viewer = self.viewer
        if viewer is None or viewer.outbox.closed:
            return
        if not self._may_send(len(text_data or bytes_data or "")):
            viewer.outbox.close(TOO_MANY_FRAMES)
        elif text_data is None or len(text_data) > LONGEST_FRAME:
            _refuse(viewer, None, "malformed", "Commands are JSON texts of at most 16 MB.")
        else:
            await self._obey(viewer, text_data)

    async def _obey(self, viewer: Viewer, frame: str) -> None:
        try:
            command = parse(frame)
        except Malformed as error:
            _refuse(viewer, error.ref, "malformed", str(error))
            return
        if isinstance(command, Sync):
            self._catch_up(viewer, command)
        elif isinstance(command, Ping):
            viewer.outbox.answer(PONG[self.face])
        else:
            await _answered(viewer, command, self._execute(viewer, command))

    def _catch_up(self, viewer: Viewer, command: Sync) -> None:
        """Catch up beside the commands, which need not wait for it. Of several that wait the last one counts."""
        viewer.wanted = command
        if viewer.syncing is None:
            viewer.syncing = asyncio.get_running_loop().create_task(self._catch_up_all(viewer))

    async def _catch_up_all(self, viewer: Viewer) -> None:
        while (command := viewer.wanted) is not None and not viewer.outbox.closed:
            viewer.wanted = None
            have = {message_id: _known(known) for message_id, known in command.have.items()}
            await _answered(viewer, command, viewer.feed.sync(viewer.outbox, self.user, command.since, have))
        viewer.syncing = None

    async def _execute(self, viewer: Viewer, command: Request) -> None:
        result = await self.hub.threads.run(execute, self.user, self.session_id, command)
        viewer.outbox.answer(_dump({"type": "ack", "ref": command.ref, **result}))

    def _may_send(self, size: int) -> bool:
        now = time.monotonic()
        earned = (now - self.allowed_at) * RATE
        self.allowance = min(float(BURST), self.allowance + earned) - 1 - size / CHARS_PER_FRAME
        self.allowed_at = now
        return self.allowance >= 0

    async def _send_text(self, frame: str) -> None:
        await self.send(text_data=frame)

    async def _close_with(self, code: int) -> None:
        await self.close(code)


async def _answered(viewer: Viewer, command: AnyCommand, work: Coroutine[Any, Any, None]) -> None:
    """Do what a command asks; a failure is an answer too."""
    try:
        await work
    except NoSuchSession:
        viewer.outbox.close(NO_ACCESS)
    except Refused as error:
        _refuse(viewer, command.ref, error.code, error.message)
    except (DatabaseError, InterfaceError):
        logger.exception("A command could not be carried out")
        _refuse(viewer, command.ref, "unavailable", "Parley cannot reach its database right now. Try again.")
    except Exception:
        logger.exception("A command failed")
        _refuse(viewer, command.ref, "internal", "Something went wrong inside Parley. It has been logged.")


def _refuse(viewer: Viewer, ref: str | None, code: str, message: str) -> None:
    viewer.outbox.answer(_dump({"type": "refused", "ref": ref, "code": code, "message": message}))


def _known(known: Known | int) -> Json:
    return {"length": known} if isinstance(known, int) else known.model_dump()


def _dump(answer: Json) -> str:
    """Write an answer in ASCII: it may repeat what the client sent, and not all of that can be told in UTF-8."""
    return json.dumps(answer)


PONG = {"events": '{"type":"pong"}', "page": '{"op":"pong"}'}


class EventsConsumer(SessionConsumer):
    """Events as JSON (docs/protocol.md, 1)."""

    face = "events"


class PageConsumer(SessionConsumer):
    """Events as HTML for Parley's own page (docs/protocol.md, 2)."""

    face = "page"
