"""Requests that fail over HTTP while other calls of the same connection are running."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from aiohttp import web

from agents.errors import ToolError
from agents.i18n import TranslatableText
from agents.mcp.config import AddedServer, ServerConfig
from agents.mcp.connection import CHECK, Connection
from agents.mcp.examine import examine
from agents.mcp.http import connect
from agents.mcp.oauth import Bearer
from agents.mcp.sign_in import ENDED, NARROW, SignInEnded
from tests.support.mcp_server import answering, http_answer

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Ended:
    """The tokens of a sign-in that ends during the connection."""

    def __init__(self) -> None:
        self.lacking = list[tuple[str, str]]()

    async def current(self) -> str:
        return "first"

    async def renew(self, refused: str) -> str:
        raise SignInEnded

    async def add_lacking(self, refused: str, scope: str) -> None:
        self.lacking.append((refused, scope))


async def refuse(request: web.Request) -> web.StreamResponse:
    return web.Response(status=401)


async def refuse_scope(request: web.Request) -> web.StreamResponse:
    asks = 'Bearer error="insufficient_scope", scope="notes notes:write", resource_metadata="https://notes.example/"'
    return web.Response(status=403, headers={"WWW-Authenticate": asks})


async def refuse_scope_without_name(request: web.Request) -> web.StreamResponse:
    return web.Response(status=403, headers={"WWW-Authenticate": 'Bearer error="insufficient_scope"'})


async def drop(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


async def cut_short(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"content-type": "application/json", "content-length": "500"})
    await answer.prepare(request)
    await answer.write(b'{"jsonrpc"')
    return await drop(request)


class Server:
    """A server that answers calls of `slow` when `is_over` is set, and all other calls with `broken`."""

    def __init__(self, broken: Answer, broken_methods: tuple[str, ...] = ("tools/call",)) -> None:
        self.broken, self.broken_methods = broken, broken_methods
        self.connections = 0
        self.slow_began = asyncio.Queue[None]()
        self.is_over, self.cancelled = asyncio.Event(), asyncio.Event()
        self.config = ServerConfig()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        message = await request.json() if request.method == "POST" else {}
        self.connections += message.get("method") == "initialize"
        if (message.get("params") or {}).get("name") == "slow":
            self.slow_began.put_nowait(None)
            await self.is_over.wait()
            result = {"content": [{"type": "text", "text": "done"}]}
            return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})
        if message.get("method") == "notifications/cancelled":
            self.cancelled.set()
        if message.get("method") in self.broken_methods:
            return await self.broken(request)
        return http_answer(message)


@asynccontextmanager
async def connected(server: Server, auth: httpx2.Auth | None = None) -> AsyncIterator[Connection]:
    async with answering(server.answer) as server.config, asyncio.timeout(60):
        connection = Connection("notes", lambda on_end: connect(server.config, {}, auth))
        try:
            yield connection
        finally:
            server.is_over.set()
            await connection.close()


async def call(connection: Connection, tool: str) -> str:
    try:
        result = await connection.call(tool, {}, lambda text: None)
    except ToolError as error:
        return str(error)
    return str(result.content)


@pytest.mark.parametrize(
    ("broken", "auth", "words"),
    [
        (refuse, None, "failed: it requires a sign-in (status 401)."),
        (refuse, Bearer(Ended()), f"failed: {ENDED}."),
        (refuse_scope, Bearer(Ended()), f"failed: {NARROW}."),
        (drop, None, "closed the connection before it answered."),
        (cut_short, None, "failed: it ended its answer too early."),
    ],
)
async def test_broken_call_does_not_end_other_calls(broken: Answer, auth: httpx2.Auth | None, words: str) -> None:
    """UI-16: sessions share a connection, so a call that fails must not end the calls of the others."""
    server = Server(broken)
    async with connected(server, auth) as connection:
        slow = asyncio.create_task(call(connection, "slow"))
        await server.slow_began.get()
        said = await call(connection, "broken")
        assert words in said
        # The model must know whether the server may have executed the call.
        assert (CHECK in said) == (broken not in (refuse, refuse_scope))
        await asyncio.gather(*connection._probes)
        server.is_over.set()
        assert "done" in await slow
        assert server.connections == 1


async def test_calls_end_no_other_calls_if_each_request_needs_a_sign_in() -> None:
    """UI-19: when the sign-in ends, the server also refuses the request that checks the connection."""
    server = Server(refuse, ("tools/call", "ping"))
    async with connected(server, Bearer(Ended())) as connection:
        slow = asyncio.create_task(call(connection, "slow"))
        await server.slow_began.get()
        assert ENDED in await call(connection, "broken")
        await asyncio.gather(*connection._probes)
        server.is_over.set()
        assert "done" in await slow


async def test_rights_that_a_call_lacks_are_kept_for_the_next_sign_in() -> None:
    """UI-19: the next sign-in can ask for the rights that the server names, if it does."""
    tokens = Ended()
    async with connected(Server(refuse_scope), Bearer(tokens)) as connection:
        assert NARROW in await call(connection, "broken")
    async with connected(Server(refuse_scope_without_name), Bearer(tokens)) as connection:
        assert NARROW in await call(connection, "broken")
    assert tokens.lacking == [("first", "notes notes:write"), ("first", "")]


async def test_stop_that_the_server_does_not_take_ends_no_other_call() -> None:
    """RUN-07: the request that cancels a call at the server may fail."""
    server = Server(drop, ("notifications/cancelled",))
    async with connected(server) as connection:
        slow = asyncio.create_task(call(connection, "slow"))
        await server.slow_began.get()
        stopped = asyncio.create_task(call(connection, "slow"))
        await server.slow_began.get()
        stopped.cancel()
        await server.cancelled.wait()
        server.is_over.set()
        assert "done" in await slow
        assert "done" in await call(connection, "slow")
        assert server.connections == 1


async def test_server_that_breaks_after_the_handshake_is_explained() -> None:
    """UI-19: Test connection shows why the tools could not be listed, in the user's language."""
    server = Server(refuse, ("tools/list",))
    async with connected(server):
        offer = await examine(AddedServer("row 1", "1", "notes", server.config))
    assert offer.problem == "it requires a sign-in (status 401)"
    assert isinstance(offer.problem, TranslatableText)


BAD = "Bad Request:"
GONE: list[tuple[int, dict[str, Any], bool]] = [
    (404, {"text": "not found"}, True),
    (404, {"body": {"id": None, "error": {"code": -32001, "message": "Session not found"}}}, True),
    (404, {"body": {"error": {"code": -32001, "message": "Issue not found"}}}, False),
    # The answers of servers that are made from the example of the TypeScript SDK, and of the older Python SDK.
    (400, {"body": {"id": None, "error": {"code": -32000, "message": f"{BAD} No valid session ID provided"}}}, True),
    (400, {"body": {"id": None, "error": {"code": -32000, "message": f"{BAD} Server not initialized"}}}, True),
    (400, {"body": {"id": "server-error", "error": {"code": -32600, "message": f"{BAD} Invalid session ID"}}}, True),
    (400, {"text": "Invalid or missing session ID"}, True),
    (400, {"text": "\n<html><body>Blocked. Your session: 5</body></html>"}, False),
    (400, {"body": {"id": None, "error": {"code": -32700, "message": "Parse error"}}}, False),
    (400, {"body": {"error": {"code": -32602, "message": "The session of this user has ended"}}}, False),
    (400, {"text": "Bad request"}, False),
]


@pytest.mark.parametrize(("status", "answer", "is_repeated"), GONE)
async def test_call_in_a_session_that_the_server_has_ended_is_sent_once_more(
    status: int, answer: dict[str, Any], is_repeated: bool
) -> None:
    """UI-16: a server that was restarted has not executed the call. An error with the call's id may come from it."""
    sessions, called = ["first"], list[str]()

    async def reply(request: web.Request) -> web.Response:
        message = await request.json() if request.method == "POST" else {}
        headers = {"mcp-session-id": sessions[-1]}
        if message.get("method") == "tools/call":
            called.append(request.headers["mcp-session-id"])
        if request.headers.get("mcp-session-id", sessions[-1]) != sessions[-1]:
            if "text" in answer:
                return web.Response(status=status, text=answer["text"])
            return web.json_response({"jsonrpc": "2.0", "id": message.get("id"), **answer["body"]}, status=status)
        found = http_answer(message)
        found.headers.update(headers)
        return found

    async with answering(reply) as config, asyncio.timeout(60):
        connection = Connection("notes", lambda on_end: connect(config, {}))
        await call(connection, "search")
        sessions.append("second")
        said = await call(connection, "search")
        await connection.close()
    assert called == (["first", "first", "second"] if is_repeated else ["first", "first"])
    assert said.startswith("The ") != is_repeated


async def test_call_is_sent_twice_at_most() -> None:
    """UI-16: a server that ends each session at once gets no endless calls."""
    called = list[str]()

    async def reply(request: web.Request) -> web.Response:
        message = await request.json() if request.method == "POST" else {}
        if message.get("method") == "tools/call":
            called.append(request.headers["mcp-session-id"])
            return web.Response(status=404)
        found = http_answer(message)
        found.headers["mcp-session-id"] = "only"
        return found

    async with answering(reply) as config, asyncio.timeout(60):
        connection = Connection("notes", lambda on_end: connect(config, {}))
        said = await call(connection, "search")
        await connection.close()
    assert (said, called) == ("The MCP server notes has ended the session. Try again.", ["only", "only"])


def packed(data: bytes, encoding: str) -> web.Response:
    for _ in encoding.split(","):
        data = gzip.compress(data)
    return web.Response(body=data, headers={"content-type": "application/json", "content-encoding": encoding})


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip"])
async def test_a_small_answer_does_not_fill_the_memory(encoding: str) -> None:
    """A server can compress 100 MB into some bytes. The call fails, and the connection stays."""
    bomb = packed(b" " * 100_000_000, encoding)

    async def broken(request: web.Request) -> web.StreamResponse:
        return web.Response(body=bomb.body, headers=bomb.headers)

    async with connected(Server(broken)) as connection:
        tracemalloc.start()
        try:
            said = await call(connection, "fast")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert "answer" in said
    assert peak < 30_000_000


async def test_a_compressed_answer_is_read() -> None:
    """Some servers compress, although the request asks for plain text."""

    async def answer(request: web.Request) -> web.StreamResponse:
        result = {"content": [{"type": "text", "text": "read"}]}
        message = {"jsonrpc": "2.0", "id": (await request.json())["id"], "result": result}
        return packed(json.dumps(message).encode(), "gzip")

    async with connected(Server(answer)) as connection:
        assert "read" in await call(connection, "fast")
