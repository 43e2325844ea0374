"""The sockets: they read commands, answer them, and hand the rest to the hub. Nothing waits for a run here."""

from __future__ import annotations

import logging
import time
from typing import Any, ClassVar

from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError

from chat.commands import LONGEST_FRAME, AnyCommand, Known, Malformed, Ping, Sync, parse
from chat.live.feed import Feed, dump
from chat.live.outbox import NO_ACCESS, NO_SUCH_SESSION, SIGN_IN_AGAIN, TOO_MANY_FRAMES, Face, Outbox
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


class SessionConsumer(AsyncWebsocketConsumer):
    """One socket on one session. Subclasses differ only in the face that the hub shows them."""

    face: ClassVar[Face]
    # The hub listens for all sockets of the process: a channel for each would cost every other one time.
    channel_layer_alias = "none"

    user: User
    session_id: str
    outbox: Outbox | None = None
    feed: Feed | None = None
    allowance = float(BURST)
    allowed_at = 0.0

    async def connect(self) -> None:
        """Accept whoever may see the session; tell others by close code why not."""
        await self.accept()
        user = self.scope.get("user")
        self.session_id = self.scope["url_route"]["kwargs"]["session_id"]
        if not isinstance(user, User):
            await self.close(SIGN_IN_AGAIN)
            return
        self.user = user
        hub = embedded.hub()
        try:
            _session, role = await hub.threads.run(session_for, user, self.session_id)
        except NoSuchSession:
            await self.close(NO_SUCH_SESSION)
            return
        key = self.scope["session"].session_key or ""
        self.outbox = Outbox(self.face, self._send_text, self._close_with, user_id=user.pk, session_key=key, role=role)
        self.feed = await hub.watch(self.session_id, self.outbox)

    async def disconnect(self, code: int) -> None:
        if self.outbox is not None:
            self.outbox.closed = True
            if self.feed is not None:
                embedded.hub().unwatch(self.feed, self.outbox)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Carry out one command and answer it; whatever is wrong with it, the socket stays open."""
        if self.outbox is None or self.outbox.closed:
            return
        if not self._may_send():
            self.outbox.close(TOO_MANY_FRAMES)
            return
        if text_data is None or len(text_data) > LONGEST_FRAME:
            self._refuse(None, "malformed", "Commands are JSON texts of at most 16 MB.")
            return
        try:
            command = parse(text_data)
        except Malformed as error:
            self._refuse(error.ref, "malformed", str(error))
            return
        await self._answer(command)

    async def _answer(self, command: AnyCommand) -> None:
        assert self.outbox is not None
        assert self.feed is not None
        try:
            if isinstance(command, Ping):
                self.outbox.answer(PONG[self.face])
            elif isinstance(command, Sync):
                have = {message_id: _known(known) for message_id, known in command.have.items()}
                if not await self.feed.sync(self.outbox, command.since, have):
                    self.outbox.close(NO_SUCH_SESSION)
            else:
                result = await embedded.hub().threads.run(execute, self.user, self.session_id, command)
                self.outbox.answer(dump({"type": "ack", "ref": command.ref, **result}))
        except NoSuchSession:
            self.outbox.close(NO_ACCESS)
        except Refused as error:
            self._refuse(command.ref, error.code, error.message)
        except DatabaseError:
            logger.exception("A command could not be carried out")
            self._refuse(command.ref, "unavailable", "Parley cannot reach its database right now. Try again.")
        except Exception:
            logger.exception("A command failed")
            self._refuse(command.ref, "internal", "Something went wrong inside Parley. It has been logged.")

    def _refuse(self, ref: str | None, code: str, message: str) -> None:
        if self.outbox is not None:
            self.outbox.answer(dump({"type": "refused", "ref": ref, "code": code, "message": message}))

    def _may_send(self) -> bool:
        now = time.monotonic()
        self.allowance = min(float(BURST), self.allowance + (now - self.allowed_at) * RATE) - 1
        self.allowed_at = now
        return self.allowance >= 0

    async def _send_text(self, frame: str) -> None:
        await self.send(text_data=frame)

    async def _close_with(self, code: int) -> None:
        await self.close(code)


def _known(known: Known | int) -> Json:
    return {"length": known} if isinstance(known, int) else known.model_dump()


PONG = {"events": '{"type":"pong"}', "page": '{"op":"pong"}'}


class EventsConsumer(SessionConsumer):
    """Events as JSON (docs/protocol.md, 1)."""

    face = "events"


class PageConsumer(SessionConsumer):
    """Events as HTML for Parley's own page (docs/protocol.md, 2)."""

    face = "page"
