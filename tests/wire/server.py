"""The server, which checks and records each request, and then plays the next scripted reply or the model's answer."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from aiohttp.typedefs import Handler

from tests.wire import anthropic, anthropic_rules, openai, openai_rules, responses, responses_rules
from tests.wire.model import answer
from tests.wire.pace import PacedWriter
from tests.wire.script import SSE, Cut, Pause, Reply, RequestRefusedError, Step

# The seconds that a test waits for an expected event before it fails.
PATIENCE = 20.0
MODELS = ("wire-large", "wire-small")
Encoded = tuple[list[bytes], Iterator[bytes], Iterator[bytes]]


@dataclass
class Received:
    """A request as the server received it; `gone` is set if its client disconnected before the answer's end."""

    path: str
    port: int
    headers: dict[str, str]
    body: dict[str, Any]
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def left(self) -> None:
        """Wait until the client has disconnected; fail if it does not."""
        async with asyncio.timeout(PATIENCE):
            await self.gone.wait()


class WireServer:
    """A server for both vendors, and for both APIs of OpenAI, on 127.0.0.1: `async with WireServer() as server`.

    Port 0 picks a free port. `requests` holds the received requests, except those for the list of models, unless
    `record` is off, as for servers that run long.
    """

    def __init__(self, port: int = 0, *, record: bool = True) -> None:
        self.port = port
        self.record = record
        self.requests: list[Received] = []
        self.arrived = asyncio.Condition()
        self._script: deque[Reply] = deque()
        self._lists: deque[Reply] = deque()
        # A function that answers valid requests after the script, in place of the model.
        self.improvise: Callable[[dict[str, Any]], Reply] | None = None
        self._runner: web.AppRunner | None = None
        self._is_closed = False
        self._answering: set[asyncio.Transport] = set()

    @property
    def anthropic_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def script(self, *replies: Reply) -> None:
        """Queue replies for the next valid requests; the model answers once they are used up."""
        self._script.extend(replies)

    def script_lists(self, *replies: Reply) -> None:
        """Queue replies for the next requests for the list of models, which clients also send in the background."""
        self._lists.extend(replies)

    async def received(self, count: int) -> Received:
        """Wait for the count-th request since the start; fail if it does not come."""
        async with asyncio.timeout(PATIENCE), self.arrived:
            await self.arrived.wait_for(lambda: len(self.requests) >= count)
        return self.requests[count - 1]

    def close(self) -> None:
        """Drop the present answers and refuse all requests until `open`, after a test that shares the server."""
        self._is_closed = True
        for transport in self._answering:
            transport.abort()

    def open(self) -> None:
        """Answer again like a new server, without a script or requests."""
        self._is_closed = False
        self._script.clear()
        self._lists.clear()
        self.improvise = None
        self.requests.clear()

    async def __aenter__(self) -> Self:
        @web.middleware
        async def watch(request: web.Request, handler: Handler) -> web.StreamResponse:
            if self._is_closed:
                return web.json_response(openai.error_body("This server is closed."), status=400)
            assert request.transport
            transport = request.transport
            self._answering.add(transport)
            try:
                return await handler(request)
            finally:
                self._answering.discard(transport)

        app = web.Application(client_max_size=64 * 2**20, middlewares=[watch])
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/chat/completions", self._completions)
        app.router.add_post("/v1/responses", self._responses)
        app.router.add_get("/v1/models", self._models)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, backlog=4096)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner
        await self._runner.cleanup()

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        received = await self._record(request)
        if not {"x-api-key", "authorization"} & received.headers.keys():
            reply = anthropic.error(401, "authentication_error", "x-api-key header is required")
            return await self._play(request, received, reply)
        try:
            anthropic_rules.check(received.body)
        except RequestRefusedError as refused:
            return await self._play(request, received, anthropic.error(400, "invalid_request_error", str(refused)))
        if self._script:
            return await self._play(request, received, self._script.popleft())
        said = answer(anthropic.asked(received.body))
        return await self._stream(request, received, anthropic.stream(said, received.body["model"]), said.rate)

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        received = await self._record(request)
        if not received.headers.get("authorization"):
            return await self._play(request, received, openai.error(401, "You didn't provide an API key."))
        try:
            openai_rules.check(received.body)
        except RequestRefusedError as refused:
            return await self._play(request, received, openai.error(400, str(refused)))
        if self._script:
            return await self._play(request, received, self._script.popleft())
        if self.improvise:
            return await self._play(request, received, self.improvise(received.body))
        said = answer(openai.asked(received.body))
        with_usage = bool(received.body.get("stream_options", {}).get("include_usage"))
        encoded = openai.stream(said, received.body["model"], with_usage)
        return await self._stream(request, received, encoded, said.rate)

    async def _responses(self, request: web.Request) -> web.StreamResponse:
        received = await self._record(request)
        if not received.headers.get("authorization"):
            return await self._play(request, received, openai.error(401, "You didn't provide an API key."))
        try:
            responses_rules.check(received.body)
        except RequestRefusedError as refused:
            body = openai.error_body(str(refused), code=refused.code, param=refused.param)
            return await self._play(request, received, Reply.of_json(body, 400))
        if self._script:
            return await self._play(request, received, self._script.popleft())
        said = answer(responses.asked(received.body))
        return await self._stream(request, received, responses.stream(said, received.body["model"]), said.rate)

    async def _models(self, request: web.Request) -> web.StreamResponse:
        received = await _read(request)
        usual = Reply.of_json(_listing("anthropic-version" in request.headers))
        return await self._play(request, received, self._lists.popleft() if self._lists else usual)

    async def _record(self, request: web.Request) -> Received:
        received = await _read(request)
        if self.record:
            self.requests.append(received)
        async with self.arrived:
            self.arrived.notify_all()
        return received

    async def _play(self, request: web.Request, received: Received, reply: Reply) -> web.StreamResponse:
        try:
            if reply.hold:
                await reply.hold.wait()
            response = await _begin(request, reply.status, reply.content_type, dict(reply.headers))
            for step in reply.steps:
                await _take(request, response, step)
            if not any(isinstance(step, Cut) for step in reply.steps):
                await response.write_eof()
        except (asyncio.CancelledError, ConnectionError):
            received.gone.set()
            raise
        return response

    async def _stream(
        self, request: web.Request, received: Received, encoded: Encoded, rate: float | None
    ) -> web.StreamResponse:
        head, tokens, tail = encoded
        try:
            response = await _begin(request, 200, SSE, {})
            if rate is None:
                await response.write(b"".join([*head, *tokens, *tail]))
            else:
                await response.write(b"".join(head))
                assert request.transport
                await PacedWriter(request.transport, tokens, rate).finish()
                await response.write(b"".join(tail))
            await response.write_eof()
        except (asyncio.CancelledError, ConnectionError):
            received.gone.set()
            raise
        return response


async def _begin(request: web.Request, status: int, content_type: str, headers: dict[str, str]) -> web.StreamResponse:
    response = web.StreamResponse(status=status, headers={"Content-Type": content_type, **headers})
    response.enable_chunked_encoding()
    await response.prepare(request)
    return response


async def _take(request: web.Request, response: web.StreamResponse, step: Step) -> None:
    match step:
        case bytes():
            await response.write(step)
        case Pause(seconds):
            await asyncio.sleep(seconds)
        case asyncio.Event():
            await step.wait()
        case Cut():
            assert request.transport
            request.transport.abort()


async def _read(request: web.Request) -> Received:
    raw = await request.read()
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert request.transport
    port: int = request.transport.get_extra_info("peername")[1]
    return Received(request.path, port, headers, json.loads(raw) if raw else {})


def _listing(for_anthropic: bool) -> dict[str, Any]:
    if for_anthropic:
        made = {"type": "model", "created_at": "2026-01-01T00:00:00Z", "lifecycle": "active"}
        models = [{"id": name, "display_name": name} | made for name in MODELS]
        return {"data": models, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]}
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "created": 1, "owned_by": "wire"} for name in MODELS],
    }
