"""Errors of MCP servers in words for users and models."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from agents.errors import ToolError
from agents.mcp.connection import Connection
from agents.mcp.http import connect
from tests.support.mcp_server import answering, http_answer

HTML: dict[str, Any] = {"text": "<p>Sign in</p>", "content_type": "text/html"}
ENDLESS: dict[str, Any] = {"text": f"data: {'x' * 4_000_000}\n\n", "content_type": "text/event-stream"}
ANSWERS: list[tuple[str, dict[str, Any]]] = [
    ("its answer is not a valid message.", {"text": "{", "content_type": "application/json"}),
    ("it answered with the HTTP status 502 (Bad Gateway).", {"status": 502, **HTML}),
    ("it answered with the HTTP status 429 (Too Many Requests).", {"status": 429, "text": '{"error": "slow down"}'}),
    ("it answered with the HTTP status 520.", {"status": 520}),
    ("the answer has more than 4,000,000 bytes.", {"status": 500, **ENDLESS}),
    ("its answer has a type that MCP servers do not use.", HTML),
    ("it ended its answer too early.", {"text": "", "content_type": "text/event-stream"}),
    ("its answer is too long.", ENDLESS),
    ("its answer is too long.", {"text": f'"{"x" * 4_000_000}"', "content_type": "application/json"}),
    ("it accepted the request, but did not answer it.", {"status": 202}),
    ("its address redirects to another address.", {"status": 302, "headers": {"Location": "https://else.example/"}}),
]


@pytest.mark.parametrize(("words", "given"), ANSWERS)
async def test_failures_of_a_call_are_explained(words: str, given: dict[str, Any]) -> None:
    """UI-16: a call that fails at the server's address says what happened, without the words of a library."""

    async def answer(request: web.Request) -> web.Response:
        message = await request.json() if request.method == "POST" else {}
        return web.Response(**given) if message.get("method") == "tools/call" else http_answer(message)

    async with answering(answer) as config:
        connection = Connection("notes", lambda on_end: connect(config, {}))
        with pytest.raises(ToolError) as failed:
            await connection.call("anything", {}, lambda text: None)
        await connection.close()
    assert str(failed.value).startswith(f"The request to the MCP server notes failed: {words} If ")
