"""The models behind Parley: they stream at a steady rate in all APIs, and record when each token was sent."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from bench.text import tokens
from tests.wire import anthropic, openai, responses
from tests.wire.model import Answer, Tokens
from tests.wire.pace import PacedWriter

ASKED = re.compile(r"bench (?P<name>\w+) (?P<count>\d+) tokens of (?P<size>\d+) at (?P<rate>\d+)")
OLD = 5_000


@dataclass
class Sent:
    """One answer: the time at which its request arrived, and the times at which its tokens were sent. Monotonic."""

    arrived: float
    times: list[float] = field(default_factory=list)


def prompt(name: str, *, count: int, rate: int = 50, size: int = 0) -> str:
    """Return the message that asks for an answer of this length and speed. `name` is its key in `Upstream.sent`."""
    return f"bench {name} {count} tokens of {size} at {rate}"


class Upstream:
    """A server on 127.0.0.1 that answers messages made by `prompt`. Use it by `async with Upstream() as upstream`."""

    def __init__(self) -> None:
        self.sent: dict[str, Sent] = {}
        self.port = 0
        self.lateness: deque[float] = deque(maxlen=OLD)
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Upstream:
        app = web.Application(client_max_size=256 * 2**20)
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/chat/completions", self._completions)
        app.router.add_post("/v1/responses", self._responses)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=4096).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner
        await self._runner.cleanup()

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        said, rate = self._answer(await request.read())
        return await _stream(request, anthropic.stream(said, "bench"), rate)

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        said, rate = self._answer(await request.read())
        return await _stream(request, openai.stream(said, "bench", True), rate)

    async def _responses(self, request: web.Request) -> web.StreamResponse:
        said, rate = self._answer(await request.read())
        return await _stream(request, responses.stream(said, "bench"), rate)

    def _answer(self, body: bytes) -> tuple[Answer, float]:
        asked = _last_request(body)
        sent = self.sent[asked["name"]] = Sent(time.monotonic())
        rate = float(asked["rate"])
        said = itertools.islice(tokens(int(asked["size"])), int(asked["count"]))
        return Answer(Tokens(self._note_times(said, sent, 1 / rate)), rate=rate), rate

    def _note_times(self, said: Iterator[str], sent: Sent, interval: float) -> Iterator[str]:
        for token in said:
            now = time.monotonic()
            if sent.times:
                self.lateness.append(now - sent.times[0] - interval * len(sent.times))
            sent.times.append(now)
            yield token


def _last_request(body: bytes) -> re.Match[str]:
    """Return the last request for tokens in the messages. Notes may follow it if another worker continues the turn."""
    asked = json.loads(body)
    messages: list[dict[str, Any]] = asked["input"] if "input" in asked else asked["messages"]
    found = (list(ASKED.finditer(json.dumps(message["content"]))) for message in reversed(messages))
    return next(each[-1] for each in found if each)


async def _stream(
    request: web.Request, encoded: tuple[list[bytes], Iterator[bytes], Iterator[bytes]], rate: float
) -> web.StreamResponse:
    head, paced, tail = encoded
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    await response.write(b"".join(head))
    assert request.transport
    await PacedWriter(request.transport, paced, rate).finish()
    await response.write(b"".join(tail))
    await response.write_eof()
    return response
