"""The sockets: they read commands, answer them, and hand the rest to the hub. Nothing waits for a run here."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import parse_qs

from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError, InterfaceError
from django.utils.translation import gettext as _

from agents.messages import Json
from chat import languages
from chat.access import session_for
from chat.commands import Command, Known, Malformed, Ping, SessionCommand, Sync, longest_frame, parse
from chat.dispatch import execute
from chat.errors import NoSuchSession, ServiceError, unavailable
from chat.live.credentials import Credential, Login, Token
from chat.live.feed import Feed
from chat.live.hub import Hub
from chat.live.socket_queue import RELOAD, SocketQueue
from chat.live.subscriber import (
    NO_ACCESS,
    NO_SUCH_SESSION,
    SIGN_IN_AGAIN,
    TOO_MANY_FRAMES,
    TRY_LATER,
    Protocol,
)
from chat.models import ApiToken, SessionRole, User
from chat.origin import Origin, acting_from, origin_of_socket
from chat.runner import runtime
from chat.security.session_store import hash_key
from chat.services.messages.senders import sender_in
from chat.services.people import api_tokens
from chat.services.people.second_factor import is_missing

logger = logging.getLogger(__name__)

# A client may send this many frames at once, and this many per second for long.
BURST = 120
RATE = 20.0
# A long frame counts as one more for each of so many characters.
CHARS_PER_FRAME = 200_000


class AuthenticatedConsumer(AsyncWebsocketConsumer):
    """A socket of a signed-in user. Subclasses define what it is for."""

    protocol: ClassVar[Protocol] = "page"
    # The hub listens for all sockets of the process: a channel for each would cost every other one time.
    channel_layer_alias = "none"

    user: User
    origin: Origin
    hub: Hub
    token: ApiToken | None = None
    outbox: SocketQueue | None = None
    allowance = float(BURST)
    allowed_at = 0.0

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Call the handler of a message.

        Channels first looks, in the one thread that synchronous views share, for database connections that are too
        old: a frame then waits for whatever that thread does. Consumers use other threads, which look for themselves
        (`chat/db.py`).
        """
        await getattr(self, get_handler_name(message))(message)

    async def connect(self) -> None:
        """Accept every socket. One that may not stay is closed with a code that says why."""
        await self.accept()
        self.hub = runtime.hub()
        try:
            user = await self.authenticate()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("A socket could not be authenticated: %s", error)
            await self.close(TRY_LATER)
            return
        if user is None:
            await self.close(SIGN_IN_AGAIN)
            return
        self.user = user
        self.origin = origin_of_socket(self.scope, self.token.pk if self.token else None)
        with self.hub.connecting(user.pk) as has_room:
            if has_room:
                await self.enter()
            else:
                await self.close(TOO_MANY_FRAMES)

    async def authenticate(self) -> User | None:
        """Return the user of the browser; None if they are not signed in or must set up a second factor first."""
        user = self.scope.get("user")
        return user if isinstance(user, User) and not is_missing(user, self.scope["session"]) else None

    async def enter(self) -> None:
        """Let the person in."""
        raise NotImplementedError

    async def handle_command(self, outbox: SocketQueue, command: Command) -> None:
        """Handle a command and answer it."""
        raise NotImplementedError

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Whatever is wrong with a command, the socket stays open."""
        outbox = self.outbox
        if outbox is None or outbox.closed:
            return
        if not self._may_send(len(text_data or bytes_data or "")):
            outbox.close(TOO_MANY_FRAMES)
        elif text_data is None or len(text_data) > longest_frame():
            _refuse(outbox, None, "malformed", f"Commands are JSON texts of at most {longest_frame()} bytes.")
        else:
            await self._read(outbox, text_data)

    async def _read(self, outbox: SocketQueue, frame: str) -> None:
        try:
            command = parse(frame)
        except Malformed as error:
            _refuse(outbox, error.ref, "malformed", str(error))
            return
        if isinstance(command, Ping):
            outbox.answer(PONG[self.protocol])
        else:
            await self.handle_command(outbox, command)

    def make_outbox(self, role: SessionRole | None = None, name: str = "") -> SocketQueue:
        return SocketQueue(
            self.protocol,
            self._send_text,
            self._close_with,
            user_id=self.user.pk,
            credential=self._entry(),
            name=name or self.user.sender,
            language=self.language(),
            role=role,
        )

    def _entry(self) -> Credential | None:
        """Return by what the user was let in; the socket ends with it (LIVE-06)."""
        if self.token is not None:
            return Token(self.token.pk)
        key = self.scope["session"].session_key
        return Login(hash_key(key), self.user.pk, self.user.get_session_auth_hash()) if key else None

    def language(self) -> str:
        """What the person is spoken to in: what their page says that it was drawn in."""
        return languages.offered(self.asked("lang"))

    def asked(self, name: str) -> str:
        """What the address says behind its "?"."""
        return parse_qs(self.scope["query_string"].decode("latin-1")).get(name, [""])[-1]

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


class NotificationConsumer(AuthenticatedConsumer):
    """For pages that show no session: they are notified when a session list changed (docs/protocol.md, 5)."""

    async def enter(self) -> None:
        self.outbox = self.make_outbox()
        self.hub.enter(self.outbox)

    async def disconnect(self, code: int) -> None:
        if self.outbox is not None:
            self.outbox.leave()
            self.hub.exit(self.outbox)

    async def handle_command(self, outbox: SocketQueue, command: Command) -> None:
        _refuse(outbox, command.ref, "no_such_session", "This socket is on no session.")


@dataclass(slots=True)
class Viewer:
    """A socket with access to a session: what is sent to it, and how it catches up."""

    outbox: SocketQueue
    feed: Feed
    wanted: Sync | None = None
    syncing: asyncio.Task[None] | None = None


class SessionConsumer(AuthenticatedConsumer):
    """One socket on one session. Subclasses differ only in the protocol that the hub shows them."""

    session_id: str
    viewer: Viewer | None = None

    async def enter(self) -> None:
        """Subscribe a user who may see the session."""
        self.session_id = self.scope["url_route"]["kwargs"]["session_id"]
        try:
            role, name = await self.hub.threads.run(_role_and_name, self.user, self.session_id)
        except NoSuchSession:
            await self.close(NO_SUCH_SESSION)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("A socket could not be let in: %s", error)
            await self.close(TRY_LATER)
        else:
            self.outbox = self.make_outbox(role, name)
            self.viewer = Viewer(self.outbox, self.hub.watch(self.session_id, self.outbox))

    async def disconnect(self, code: int) -> None:
        if self.viewer is not None:
            if self.viewer.syncing is not None:
                self.viewer.syncing.cancel()
            self.viewer.outbox.leave()
            self.hub.unwatch(self.viewer.feed, self.viewer.outbox)

    async def handle_command(self, outbox: SocketQueue, command: Command) -> None:
        if self.viewer is None:
            return
        if isinstance(command, Sync):
            self._catch_up(self.viewer, command)
        elif isinstance(command, SessionCommand):
            await _answered(self.viewer.outbox, command, self._execute(outbox, command))

    def _catch_up(self, viewer: Viewer, command: Sync) -> None:
        """Catch up beside the commands, which need not wait for it. Of several that wait the last one counts."""
        viewer.wanted = command
        if viewer.syncing is None:
            viewer.syncing = asyncio.get_running_loop().create_task(self._catch_up_all(viewer))

    async def _catch_up_all(self, viewer: Viewer) -> None:
        while (command := viewer.wanted) is not None and not viewer.outbox.closed:
            viewer.wanted = None
            have = {message_id: _known(known) for message_id, known in command.have.items()}
            async with self.hub.catching_up(self.user.pk):
                await _answered(viewer.outbox, command, viewer.feed.sync(viewer.outbox, self.user, command.since, have))
                await viewer.outbox.answered()
        viewer.syncing = None

    async def _execute(self, outbox: SocketQueue, command: SessionCommand) -> None:
        result = await self.hub.threads_for(command).run(self._carry_out, outbox.language, command)
        outbox.answer(_dump({"type": "ack", "ref": command.ref, **result}))

    def _carry_out(self, language: str, command: SessionCommand) -> Json:
        """Runs in a thread of the hub, which has neither the language nor the origin of its own."""
        with acting_from(self.origin):
            return languages.speaking(language, execute, self.user, self.session_id, command)


def _role_and_name(user: User, session_id: str) -> tuple[SessionRole, str]:
    session, role = session_for(user, session_id)
    return role, sender_in(session, user)


async def _answered(outbox: SocketQueue, command: Command, work: Coroutine[Any, Any, None]) -> None:
    """Do what a command asks; a failure is an answer too."""
    try:
        await work
    except NoSuchSession:
        outbox.close(NO_ACCESS)
    except ServiceError as error:
        _refuse(outbox, command.ref, error.code, error.message, **error.details)
    except (DatabaseError, InterfaceError):
        logger.exception("A command could not be carried out")
        _refuse(outbox, command.ref, "unavailable", languages.speaking(outbox.language, unavailable))
    except Exception:
        logger.exception("A command failed")
        _refuse(outbox, command.ref, "internal", languages.speaking(outbox.language, _internal))


def _read_only() -> str:
    return _("This token is read-only.")


def _internal() -> str:
    return _("Something went wrong. The error was logged.")


def _refuse(outbox: SocketQueue, ref: str | None, code: str, message: str, **details: Any) -> None:
    outbox.answer(_dump({"type": "refused", "ref": ref, "code": code, "message": message, **details}))


def _known(known: Known | int) -> Json:
    return {"length": known} if isinstance(known, int) else known.model_dump()


def _dump(answer: Json) -> str:
    """Encode a response in ASCII: it can repeat what the client sent, and lone surrogates have no UTF-8 form."""
    return json.dumps(answer)


PONG = {"events": '{"type":"pong"}', "page": '{"op":"pong"}'}


class EventsConsumer(SessionConsumer):
    """Events as JSON (docs/protocol.md, 1), for browsers and for programs with a token.

    Refusals are in the language that the client accepts.
    """

    protocol = "events"

    async def authenticate(self) -> User | None:
        """Return the user of the token, or of the browser if the handshake has no token."""
        secret = self.scope.get("api_token")
        if not isinstance(secret, str):
            return await super().authenticate()
        self.token = await self.hub.threads.run(api_tokens.recognised, secret)
        return self.token.user if self.token else None

    async def _execute(self, outbox: SocketQueue, command: SessionCommand) -> None:
        if self.token is not None and self.token.scope != ApiToken.Scope.WRITE:
            raise ServiceError("read_only_token", languages.speaking(outbox.language, _read_only))
        await super()._execute(outbox, command)

    def language(self) -> str:
        header = dict(self.scope["headers"]).get(b"accept-language", b"")
        return languages.of_header(header.decode("latin-1"))


class PageConsumer(SessionConsumer):
    """Events as HTML for Parley's own page (docs/protocol.md, 4)."""

    protocol = "page"

    async def enter(self) -> None:
        """Accept the page, and reload it if the viewer's role or workspace changed since it was rendered."""
        await super().enter()
        if self.outbox is not None and self.asked("role") not in ("", self.outbox.role):
            self.outbox.answer(RELOAD)
