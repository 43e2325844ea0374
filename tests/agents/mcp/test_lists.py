"""Lists of MCP servers in several pages."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from agents.mcp.config import AddedServer
from agents.mcp.examine import examine
from tests.support.mcp_server import answering, http_answer

# Pages of tools, each with the cursor of the next one. The key is the cursor in the request.
ENDLESS: dict[str | None, tuple[list[str], str | None]] = {None: (["a"], ""), "": (["a"], "")}
SAME: dict[str | None, tuple[list[str], str | None]] = {None: (["a"], "x"), "x": (["a"], "x")}
THREE: dict[str | None, tuple[list[str], str | None]] = {None: (["a"], ""), "": (["b"], "2"), "2": (["c", "a"], None)}


@pytest.mark.parametrize(
    ("pages", "names", "asked"),
    [(ENDLESS, ["a"], [None, ""]), (SAME, ["a"], [None, "x"]), (THREE, ["a", "b", "c"], [None, "", "2"])],
)
async def test_pages_that_repeat_give_each_tool_once(
    pages: dict[str | None, tuple[list[str], str | None]], names: list[str], asked: list[str | None]
) -> None:
    """UI-16: a copy would have a name that the rules of an agent do not contain."""
    seen: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        message = await request.json() if request.method == "POST" else {}
        if message.get("method") != "tools/list":
            return http_answer(message)
        seen.append((message.get("params") or {}).get("cursor"))
        tools, following = pages[seen[-1]]
        result: dict[str, Any] = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in tools]}
        if following is not None:
            result["nextCursor"] = following
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async with answering(answer) as config:
        offer = await examine(AddedServer("row 1", "1", "notes", config))
    assert ([tool.name for tool in offer.tools], offer.skipped, seen) == (names, (), asked)
