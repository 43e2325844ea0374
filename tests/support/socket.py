"""A WebSocket within the process, to the real consumers by the real routes, without a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, TypeVar

from channels.routing import URLRouter
from django.contrib.auth.models import AnonymousUser

from agents.messages import Json
from chat.models import Session, User
from chat.routing import websocket_urlpatterns

T = TypeVar("T")
Application = Callable[[Any, Any, Any], Any]

ROUTES: Application = URLRouter(websocket_urlpatterns)
PATIENCE = 20.0


def path_of(session: Session | str, protocol: str = "events") -> str:
    session_id = session if isinstance(session, str) else session.pk
    return f"/ws/sessions/{session_id}/{'page' if protocol == 'page' else ''}"


def is_presence(frame: Json) -> bool:
    return frame.get("type") in ("presence", "editing") or frame.get("op") in ("presence", "typing", "editing")


class Socket:
    """One connection. While `flowing` is cleared, the client reads nothing. `on_frame` gets every parsed frame.

    `frames` has the frames about the session, except short deltas, which are lists. `presence` has the presence frames,
    which timers send.
    """

    def __init__(
        self,
        path: str,
        user: User | AnonymousUser | None = None,
        *,
        session_key: str = "",
        query: str = "",
        headers: Iterable[tuple[bytes, bytes]] = (),
        app: Application = ROUTES,
    ) -> None:
        self.scope: Json = {
            "type": "websocket",
            "path": path,
            "headers": list(headers),
            "query_string": query.encode(),
            "subprotocols": [],
        }
        if user is not None:
            self.scope |= {"user": user, "session": SimpleNamespace(session_key=session_key)}
        self.frames: list[Json] = []
        self.presence: list[Json] = []
        self.on_frame: Callable[[Any], None] = lambda frame: None
        self.accepted = False
        self.close_code: int | None = None
        self.flowing = asyncio.Event()
        self.flowing.set()
        self._app = app
        self._to_app: asyncio.Queue[Json] = asyncio.Queue()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Socket:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.leave()

    async def open(self) -> Socket:
        """Connect, and return when the server has accepted or rejected the connection."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._to_app.put_nowait({"type": "websocket.connect"})
        await self.until(lambda: self.accepted or self.close_code is not None)
        return self

    async def _run(self) -> None:
        try:
            await self._app(self.scope, self._to_app.get, self._from_app)
        finally:
            self._changed.set()

    async def _from_app(self, message: Json) -> None:
        if message["type"] == "websocket.close":
            if self.close_code is None:
                self.close_code = message.get("code", 1000)
                self._to_app.put_nowait({"type": "websocket.disconnect", "code": self.close_code})
        elif self.close_code is not None:
            raise ConnectionError("the socket is closed")
        elif message["type"] == "websocket.accept":
            self.accepted = True
        else:
            await self.flowing.wait()
            frame = json.loads(message["text"].encode())  # UTF-8 as on the network, so that lone surrogates fail
            if isinstance(frame, dict):
                (self.presence if is_presence(frame) else self.frames).append(frame)
            self.on_frame(frame)
        self._changed.set()

    def send(self, **command: Any) -> None:
        self.send_text(json.dumps(command))

    def send_text(self, text: str) -> None:
        self._to_app.put_nowait({"type": "websocket.receive", "text": text})

    def send_bytes(self, data: bytes) -> None:
        self._to_app.put_nowait({"type": "websocket.receive", "bytes": data})

    async def until(self, condition: Callable[[], T]) -> T:
        """Wait for a condition that frames or the close can change. Fail if the server's side has ended."""
        async with asyncio.timeout(PATIENCE):
            while not (found := condition()):
                if self._task is not None and self._task.done():
                    self._task.result()
                    raise AssertionError(f"the socket is over: {self.close_code}")
                self._changed.clear()
                await self._changed.wait()
        return found

    async def next(self, **wanted: Any) -> Json:
        """Return the first frame with these fields. Wait for it if it was not received yet."""

        def found() -> Json | None:
            return next((frame for frame in self.frames if wanted.items() <= frame.items()), None)

        frame = await self.until(found)
        assert frame is not None
        return frame

    async def ask(self, **command: Any) -> Json:
        """Send a command, and return its ack or refusal."""
        ref = f"ref{len(self.frames)}-{id(command)}"
        self.send(ref=ref, **command)
        return await self.next(ref=ref)

    async def let_in(self) -> None:
        """Wait until the server answers a ping, because it accepts the connection before it authenticates the user."""
        known = len(self.frames)
        self.send(type="ping")
        await self.until(lambda: any("pong" in frame.values() for frame in self.frames[known:]))

    async def closed(self) -> int:
        """Wait until the server closes the connection, and return the code."""
        async with asyncio.timeout(PATIENCE):
            while self.close_code is None:
                self._changed.clear()
                await self._changed.wait()
        return self.close_code

    async def leave(self, code: int = 1001) -> None:
        """Disconnect like a closed tab, and return when the server's side has ended."""
        if self.close_code is None:
            self.close_code = code
            self._to_app.put_nowait({"type": "websocket.disconnect", "code": code})
        self.flowing.set()
        if self._task is not None:
            await asyncio.wait_for(self._task, PATIENCE)
