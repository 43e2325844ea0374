"""The WebSocket consumers: read commands, answer them, and leave the rest to the hub. No consumer waits for a run."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import parse_qs

from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError, InterfaceError
from django.utils import translation
from django.utils.translation import gettext as _

from agents.messages import Json
from chat import languages
from chat.command_frames import MalformedCommand, parse
from chat.commands import Command, Editing, Fork, MarkRead, Ping, SessionCommand, Sync
from chat.db import NOT_UTF_8, is_unavailable, is_unreadable
from chat.dispatch import execute
from chat.errors import NoSuchSession, ServiceError, unavailable, unreadable
from chat.live.credentials import Token, login_of
from chat.live.feed import Feed
from chat.live.hub import Hub
from chat.live.sign_ins import role_and_name, user_of_browser
from chat.live.socket_queue import RELOAD, SocketQueue, never_sends
from chat.live.subscriber import (
    NO_SUCH_SESSION,
    SIGN_IN_AGAIN,
    TOO_MANY_FRAMES,
    TRY_LATER,
    Protocol,
)
from chat.log_context import add_log_ids
from chat.models import ApiToken, SessionRole, User
from chat.origin import Origin, origin_of_socket, using_origin
from chat.runner import runtime
from chat.services.people import api_tokens

logger = logging.getLogger(__name__)

# The rate limit of a socket: the most frames in a burst, and the frames per second in the long run.
BURST = 120
RATE = 20.0
# Errors of a query while the database is unavailable or does not respond.
AWAY = (DatabaseError, InterfaceError, TimeoutError)
# After more waiting commands, or a frame with more characters, no frames are read until all commands are handled.
MAX_WAITING = 32
MAX_WAITING_LENGTH = 10_000
# A long frame counts as one more frame for each of these.
CHARS_PER_FRAME = 200_000
# The answer to a ping, by protocol.
PONG = {"events": '{"type":"pong"}', "page": '{"op":"pong"}'}


class AuthenticatedConsumer(AsyncWebsocketConsumer):
    """A socket of a signed-in user. Subclasses define its purpose."""

    protocol: ClassVar[Protocol] = "page"
    # The hub subscribes once for all sockets of the process. A channel layer per socket would slow down the other
    # sockets.
    channel_layer_alias = "none"

    user: User
    origin: Origin
    hub: Hub
    token: ApiToken | None = None
    socket_queue: SocketQueue | None = None
    # The commands that were read, and the task that handles them. Most sockets of viewers never send one.
    _commands: deque[Command] | None = None
    _handling: asyncio.Task[None] | None = None
    allowance = float(BURST)
    allowed_at = 0.0

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Call the handler of a message.

        Channels would first check for old database connections in the one thread that synchronous views share, so that
        a frame would wait for whatever that thread does. Consumers use other threads, which do this check
        (`chat/db.py`).
        """
        await getattr(self, get_handler_name(message))(message)

    async def connect(self) -> None:
        """Accept every socket, then close those without access with a code for the reason."""
        await self.accept()
        self.hub = runtime.hub()
        try:
            user = await self.authenticate()
        except AWAY as error:
            logger.warning("Could not authenticate a socket: %s", error)
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
        """Return the user of the browser, or None if they are not signed in or must set up a second factor first."""
        return await self.hub.sign_ins.look_up(user_of_browser, self.scope)

    async def enter(self) -> None:
        """Subscribe the signed-in user, or close the socket."""
        raise NotImplementedError

    async def handle_command(self, socket_queue: SocketQueue, command: Command) -> None:
        """Handle a command and answer it."""
        raise NotImplementedError

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Handle a frame. An invalid one is answered with an error, and the socket stays open."""
        socket_queue = self.socket_queue
        if socket_queue is None or socket_queue.closed:
            return
        frame = (bytes_data or b"") if text_data is None else text_data
        if not self._may_send(len(frame)):
            socket_queue.close(TOO_MANY_FRAMES)
            return
        try:
            command = parse(frame)
        except MalformedCommand as error:
            _refuse(socket_queue, error.ref, "malformed", str(error))
            return
        if isinstance(command, Ping):
            socket_queue.answer(PONG[self.protocol])
            return
        if self._commands is None:
            self._commands = deque()
        self._commands.append(command)
        if self._handling is None or self._handling.done():
            self._handling = asyncio.get_running_loop().create_task(self._handle_commands(socket_queue, self._commands))
        if len(self._commands) > MAX_WAITING or len(frame) > MAX_WAITING_LENGTH:
            await self.commands_handled()

    async def _handle_commands(self, socket_queue: SocketQueue, commands: deque[Command]) -> None:
        """Handle commands in order, in a task, so that pings are answered even if the database does not respond."""
        while commands:
            await self.handle_command(socket_queue, commands.popleft())

    async def commands_handled(self) -> None:
        """Wait until the commands that were read are handled."""
        if self._handling is not None:
            await asyncio.wait([self._handling])

    def make_socket_queue(self, role: SessionRole | None = None, name: str = "") -> SocketQueue:
        """Return the queue of this socket. The hub closes it when its token or login ends (LIVE-06)."""
        # The server's function sends a frame past the layers of ASGI, which cost several times the write.
        extensions: Any = self.scope.get("extensions") or {}
        send_now: Callable[[str], bool] = extensions.get("parley.frames", {}).get("send_now", never_sends)
        return SocketQueue(
            self.protocol,
            self.send,
            self.close,
            user_id=self.user.pk,
            send_now=send_now,
            credential=Token(self.token.pk) if self.token else login_of(self.user, self.scope["session"]),
            name=name or self.user.sender,
            language=self.language(),
            role=role,
        )

    def language(self) -> str:
        """Return the language of the page, which is a parameter of the address."""
        return languages.offered_language(self.query_parameter("lang"))

    def query_parameter(self, name: str) -> str:
        """Return a parameter of the address's query string, or "" if it is missing."""
        return parse_qs(self.scope["query_string"].decode("latin-1")).get(name, [""])[-1]

    def _may_send(self, size: int) -> bool:
        now = time.monotonic()
        earned = (now - self.allowed_at) * RATE
        self.allowance = min(float(BURST), self.allowance + earned) - 1 - size / CHARS_PER_FRAME
        self.allowed_at = now
        return self.allowance >= 0


class NotificationConsumer(AuthenticatedConsumer):
    """The socket of pages without a session. It notifies them when a session list changed (docs/protocol.md, 5)."""

    async def enter(self) -> None:
        self.socket_queue = self.make_socket_queue()
        self.hub.enter(self.socket_queue)

    async def disconnect(self, code: int) -> None:
        await self.commands_handled()
        if self.socket_queue is not None:
            self.socket_queue.leave()
            self.hub.exit(self.socket_queue)

    async def handle_command(self, socket_queue: SocketQueue, command: Command) -> None:
        _refuse(socket_queue, command.ref, "no_such_session", "This socket has not joined a session.")


@dataclass(slots=True)
class Viewer:
    """A socket with access to a session: its outgoing frames, its feed and its pending sync."""

    socket_queue: SocketQueue
    feed: Feed
    pending_sync: Sync | None = None
    syncing: asyncio.Task[None] | None = None


class SessionConsumer(AuthenticatedConsumer):
    """A socket on a session. Subclasses differ in the protocol and in how they authenticate."""

    session_id: str
    viewer: Viewer | None = None
    # The task that stores the last read mark.
    _marking: asyncio.Task[None] | None = None
    _forking: asyncio.Task[None] | None = None  # a task, because other commands must not wait until files are copied

    async def enter(self) -> None:
        """Subscribe a user with access to the session. Close the socket of other users."""
        self.session_id = self.scope["url_route"]["kwargs"]["session_id"]
        add_log_ids(session=self.session_id)
        try:
            role, name = await self.hub.sign_ins.look_up(role_and_name, self.user, self.session_id)
        except NoSuchSession:
            await self.close(NO_SUCH_SESSION)
        except AWAY as error:
            logger.warning("Could not subscribe a socket to its session: %s", error)
            await self.close(TRY_LATER)
        else:
            self.socket_queue = self.make_socket_queue(role, name)
            self.viewer = Viewer(self.socket_queue, self.hub.watch(self.session_id, self.socket_queue))

    async def disconnect(self, code: int) -> None:
        await self.commands_handled()
        if self.viewer is not None:
            if self.viewer.syncing is not None:
                self.viewer.syncing.cancel()
            self.viewer.socket_queue.leave()
            self.hub.unwatch(self.viewer.feed, self.viewer.socket_queue)

    async def handle_command(self, socket_queue: SocketQueue, command: Command) -> None:
        if self.viewer is None:
            return
        if isinstance(command, Sync):
            self._catch_up(self.viewer, command)
        elif isinstance(command, MarkRead):
            # In a task, because the mark is stored together with those of other users.
            stored = self._store_mark(self.viewer.socket_queue, command)
            self._marking = asyncio.create_task(_answer(self.viewer.socket_queue, command, stored))
        elif isinstance(command, SessionCommand):
            if isinstance(command, Fork):
                self._forking = asyncio.create_task(self._fork(self._forking, socket_queue, command))
            else:
                await _answer(self.viewer.socket_queue, command, self._execute(socket_queue, command))

    async def _fork(self, earlier: asyncio.Task[None] | None, socket_queue: SocketQueue, command: Fork) -> None:
        """Fork after the previous fork of this socket has ended."""
        if earlier is not None:
            await asyncio.wait([earlier])
        await _answer(socket_queue, command, self._execute(socket_queue, command))

    async def _store_mark(self, socket_queue: SocketQueue, command: MarkRead) -> None:
        """Store a read mark. The answer reports that it is stored."""
        self.require_write(socket_queue)
        await self.hub.read_marks.store(self.session_id, self.user.pk, command.revision)
        socket_queue.answer(_dump({"type": "ack", "ref": command.ref}))

    def require_write(self, socket_queue: SocketQueue) -> None:
        """Raise ServiceError if the socket's credential does not allow commands."""

    def _catch_up(self, viewer: Viewer, command: Sync) -> None:
        """Sync in a task, so that commands need not wait. If several requests wait, only the last one is answered."""
        viewer.pending_sync = command
        if viewer.syncing is None:
            viewer.syncing = asyncio.get_running_loop().create_task(self._catch_up_until_current(viewer))

    async def _catch_up_until_current(self, viewer: Viewer) -> None:
        while (command := viewer.pending_sync) is not None and not viewer.socket_queue.closed:
            viewer.pending_sync = None
            have = {
                message_id: {"length": known} if isinstance(known, int) else known.model_dump()
                for message_id, known in command.have.items()
            }
            async with self.hub.catching_up(self.user.pk):
                work = viewer.feed.sync(viewer.socket_queue, self.user, command.since, have)
                await _answer(viewer.socket_queue, command, work)
                await viewer.socket_queue.answered()
        viewer.syncing = None

    async def _execute(self, socket_queue: SocketQueue, command: SessionCommand) -> None:
        self.require_write(socket_queue)
        result = await self.hub.threads_for(command).run(self._execute_in_thread, socket_queue.language, command)
        if isinstance(command, Editing) and self.viewer is not None:
            self.viewer.feed.presence.editors.note(socket_queue, command.id, is_open=command.open)
        socket_queue.answer(_dump({"type": "ack", "ref": command.ref, **result}))

    def _execute_in_thread(self, language: str, command: SessionCommand) -> Json:
        """Execute a command in a thread of the hub, with the language and the origin of this socket."""
        with using_origin(self.origin), translation.override(language):
            return execute(self.user, self.session_id, command)


async def _answer(socket_queue: SocketQueue, command: Command, work: Coroutine[Any, Any, None]) -> None:
    """Await the work of a command. Answer with the error if it fails."""
    try:
        await work
    except NoSuchSession:
        socket_queue.set_role(None)
    except ServiceError as error:
        _refuse(socket_queue, command.ref, error.code, error.message, **error.details)
    except Exception as error:
        code, message = _failure(error)
        _refuse(socket_queue, command.ref, code, languages.in_language(socket_queue.language, message))


def _failure(error: Exception) -> tuple[str, Callable[[], str]]:
    """Log the error of a command that the user did not cause. Return its code and its message."""
    if is_unreadable(error):
        logger.warning("Could not carry out a socket's command: %s", NOT_UTF_8)
        return "unreadable", unreadable
    if is_unavailable(error):
        logger.warning("Could not carry out a socket's command: %s", error)
        return "unavailable", unavailable
    logger.exception("A socket's command failed")
    return "internal", _internal


def _read_only() -> str:
    return _("This token is read-only.")


def _internal() -> str:
    return _("Something went wrong. The error was logged.")


def _refuse(socket_queue: SocketQueue, ref: str | None, code: str, message: str, **details: Any) -> None:
    socket_queue.answer(_dump({"type": "refused", "ref": ref, "code": code, "message": message, **details}))


def _dump(answer: Json) -> str:
    """Encode an answer in ASCII, because it can repeat lone surrogates from the client, which UTF-8 cannot encode."""
    return json.dumps(answer)


class EventsConsumer(SessionConsumer):
    """JSON events (docs/protocol.md, 1), for browsers and API clients. Refusals are in the client's language."""

    protocol = "events"

    async def authenticate(self) -> User | None:
        """Return the user of the token, or of the browser if the handshake has no token."""
        secret = self.scope.get("api_token")
        if not isinstance(secret, str):
            return await super().authenticate()
        self.token = await self.hub.sign_ins.look_up(api_tokens.find_valid, secret)
        return self.token.user if self.token else None

    def require_write(self, socket_queue: SocketQueue) -> None:
        if self.token is not None and self.token.scope != ApiToken.Scope.WRITE:
            raise ServiceError("read_only_token", languages.in_language(socket_queue.language, _read_only))

    def language(self) -> str:
        header = dict(self.scope["headers"]).get(b"accept-language", b"")
        return languages.of_header(header.decode("latin-1"))


class PageConsumer(SessionConsumer):
    """Events as HTML for Parley's own page (docs/protocol.md, 4)."""

    protocol = "page"

    def make_socket_queue(self, role: SessionRole | None = None, name: str = "") -> SocketQueue:
        socket_queue = super().make_socket_queue(role, name)
        socket_queue.short_frames = self.query_parameter("frames") == "short"
        return socket_queue

    async def enter(self) -> None:
        """Subscribe the page, and reload it if the viewer's role has changed since it was rendered."""
        await super().enter()
        if self.socket_queue is not None and self.query_parameter("role") not in ("", self.socket_queue.role):
            self.socket_queue.answer(RELOAD)
