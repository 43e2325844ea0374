"""The base of all measurements: the upstream, a server, its users, and sessions that stream."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from bench import rows
from bench.server import Server
from bench.upstream import Sent, Upstream, prompt
from bench.viewer import Viewer, open_viewer
from chat.models import User

PATHS = {"page": "/ws/sessions/{}/page?frames=short", "events": "/ws/sessions/{}/"}
CONFIG = """
default_agent = "agent"
[agents.agent]
model = "openai/bench"
[providers.openai]
type = "openai"
base_url = "http://127.0.0.1:{port}/v1"
api_key_env = "BENCH_KEY"
models = ["bench"]
[providers.responses]
type = "openai"
api = "responses"
base_url = "http://127.0.0.1:{port}/v1"
api_key_env = "BENCH_KEY"
models = ["bench"]
[providers.anthropic]
type = "anthropic"
base_url = "http://127.0.0.1:{port}"
api_key_env = "BENCH_KEY"
models = ["bench"]
"""


@dataclass
class Stream:
    """One session with a viewer. `name` is the key of its current answer in `Upstream.sent`."""

    session_id: str
    viewer: Viewer
    name: str = ""
    asked: float = 0.0


@dataclass
class Stage:
    """A running server with its upstream."""

    server: Server
    upstream: Upstream
    owner: User
    cookie: str
    provider: str
    face: str
    streams: list[Stream] = field(default_factory=list)
    _names: itertools.count[int] = field(default_factory=itertools.count)

    async def sessions(self, count: int, messages: int = 0) -> list[str]:
        return await asyncio.to_thread(rows.sessions, self.owner, count, self.provider, messages)

    async def watch(self, session_ids: Sequence[str], since: int = 0) -> list[Stream]:
        """Open a viewer on each session and bring it up to date, as the page does."""
        opened = []
        for session_id in session_ids:
            path = PATHS[self.face].format(session_id)
            viewer = await open_viewer(self.server.port, path, self.cookie)
            synced = viewer.wait_for(b'"synced"' if self.face == "page" else b'"changes"')
            viewer.send(type="sync", since=since, have={})
            await synced
            opened.append(Stream(session_id, viewer))
        self.streams += opened
        return opened

    def ask(self, stream: Stream, *, count: int, rate: int = 50, size: int = 0) -> None:
        """Send the message that starts an answer of `count` tokens at `rate` tokens per second."""
        stream.name = f"n{next(self._names)}"
        stream.viewer.seen.clear()
        text = prompt(stream.name, count=count, rate=rate, size=size)
        stream.asked = stream.viewer.send(type="send", text=text, key=stream.name)

    def sent(self, stream: Stream) -> Sent | None:
        return self.upstream.sent.get(stream.name)

    async def streaming(self, streams: Sequence[Stream]) -> None:
        """Wait until all streams have shown text."""
        async with asyncio.timeout(60):
            while not all(stream.viewer.seen for stream in streams):  # noqa: ASYNC110  # another process has no event to wait for
                await asyncio.sleep(0.05)

    async def cancel(self, streams: Sequence[Stream]) -> None:
        """Stop the answers, and wait until they have ended."""
        ended = [stream.viewer.wait_for(b"cancelled") for stream in streams]
        for stream in streams:
            stream.viewer.send(type="cancel")
        async with asyncio.timeout(60):
            await asyncio.gather(*ended)

    async def quiet(self) -> None:
        """Wait until the server is idle."""
        await self.server.quiet()

    async def leave(self, streams: Sequence[Stream]) -> None:
        for stream in streams:
            stream.viewer.close()
        await asyncio.sleep(0.5)


@dataclass
class Spent:
    """The CPU seconds that the server used, and the tokens that it streamed, in a period of `seconds`."""

    seconds: float
    cpu: float
    tokens: int

    @property
    def share(self) -> float:
        return self.cpu / self.seconds

    @property
    def per_thousand(self) -> float:
        return self.cpu * 1000 / self.tokens if self.tokens else float("nan")


async def spend(stage: Stage, seconds: float) -> Spent:
    """Let the streams continue for `seconds`, and return their cost."""
    tokens, cpu, began = _tokens(stage), stage.server.cpu(), time.monotonic()
    await asyncio.sleep(seconds)
    return Spent(time.monotonic() - began, stage.server.cpu() - cpu, _tokens(stage) - tokens)


def _tokens(stage: Stage) -> int:
    return sum(len(sent.times) for sent in stage.upstream.sent.values())


@asynccontextmanager
async def open_stage(kind: str, provider: str, face: str) -> AsyncIterator[Stage]:
    """Start the upstream and a server, and stop them at the end of the context."""
    data = Path(settings.DATA_DIR)
    owner = await asyncio.to_thread(rows.prepare)
    cookie = await asyncio.to_thread(rows.cookie, owner)
    async with Upstream() as upstream:
        config = data / "config.toml"
        config.write_text(CONFIG.format(port=upstream.port))
        with Server(kind, data, config) as server:
            await server.ready()
            stage = Stage(server, upstream, owner, cookie, provider, face)
            yield stage
            await stage.leave(stage.streams)
