"""The tests' MCP server, as a process with a web address."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from aiohttp import web
from aiohttp.test_utils import TestServer

from agents.mcp import example_server
from agents.mcp.config import ServerConfig
from agents.messages import Json

SERVER = Path(__file__).parent.parent / "agents/mcp/server.py"
# An MCP server that requires a sign-in, with its authorization server.
AUTH_SERVER = SERVER.with_name("auth_server.py")
# An MCP server that sends what the protocol does not allow.
NONSENSE = SERVER.with_name("nonsense.py")


@contextmanager
def serving(*command: str) -> Iterator[str]:
    """Run `server.py http PORT`, or another command with a free port as its last argument. Yield the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = [*(command or (sys.executable, str(SERVER), "http")), str(port)]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        with process.stderr:
            for line in process.stderr:
                if "running on" in line:
                    break
            yield f"http://127.0.0.1:{port}/mcp"
            process.kill()
    finally:
        process.kill()
        process.wait(20)


@asynccontextmanager
async def answering(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[ServerConfig]:
    """Serve the address of an MCP server in this process. `answer` handles all of its requests."""
    app = web.Application()
    app.router.add_route("*", "/mcp", answer)
    async with TestServer(app) as http:
        yield ServerConfig(url=str(http.make_url("/mcp")), internal_hosts=("127.0.0.1",))


def http_answer(message: Json) -> web.Response:
    """Answer a message over HTTP as the demo agent's example server. {} stands for a request that is not a POST."""
    if "id" not in message:
        return web.Response(status=202 if message else 405)
    result = example_server.answer(message["method"], message.get("params") or {})
    return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})
