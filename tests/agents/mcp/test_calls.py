"""Results of calls that break the protocol, or the schema that the server has promised."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from agents.mcp.connection import CHECK
from agents.messages import Json, ToolResult
from tests.agents.mcp.test_servers import opened, run, tools
from tests.support.mcp_server import answering, http_answer

TEXT = {"type": "text", "text": "created issue 17"}
SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
TOOL = {"name": "create", "inputSchema": {"type": "object"}, "outputSchema": SCHEMA}


async def result_of(result: Json) -> ToolResult:
    """Call a tool that answers with a result."""

    async def answer(request: web.Request) -> web.Response:
        message = await request.json() if request.method == "POST" else {}
        results: dict[str, Json] = {"tools/list": {"tools": [TOOL]}, "tools/call": result}
        if (found := results.get(message.get("method", ""))) is None:
            return http_answer(message)
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": found})

    async with answering(answer) as config, opened(config) as servers:
        return await run((await tools(servers))["create"])


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"content": [TEXT]}, "created issue 17"),
        ({"content": [TEXT], "structuredContent": {"id": "17"}}, "created issue 17"),
        ({"structuredContent": {"id": 17}}, '{"id": 17}'),
        ({"content": [], "structuredContent": [17]}, "[17]"),
        ({"content": "created issue 17"}, "created issue 17"),
        (
            {"content": [{"type": "resource_link", "uri": "https://issues.example/17"}, TEXT]},
            '{"type": "resource_link", "uri": "https://issues.example/17"}\n\ncreated issue 17',
        ),
        ({"content": [TEXT], "isError": "no", "_meta": []}, "created issue 17"),
    ],
)
async def test_result_that_breaks_the_rules_is_read_as_far_as_possible(result: dict[str, Any], text: str) -> None:
    """UI-16: the server has executed the call, so the model needs what the server has answered."""
    read = await result_of(result)
    assert (read.content, read.is_error) == (text, False)


async def test_result_without_content_is_an_error_that_warns_of_repeating_the_call() -> None:
    """UI-16: the model reads what is wrong, and that the call may have been executed."""
    read = await result_of({"output": "created issue 17"})
    assert read.is_error
    assert "answered with an invalid result (content: Field required)" in read.content
    assert CHECK in read.content
