"""An MCP server for the tests, over stdio: `server.py`, or over streamable HTTP: `server.py http PORT`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("tests")
cancelled: list[str] = []
met = asyncio.Event()
waiting: list[str] = []


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(first: int, second: int) -> int:
    """Add two numbers."""
    return first + second


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("no such file")


@server.tool()
def variables() -> list[str]:
    """List the environment variables."""
    return sorted(os.environ)


@server.tool()
def huge() -> str:
    """Return a long text."""
    return "x" * 200_000


@server.tool()
def too_huge() -> str:
    """Return a text that is longer than a message may be."""
    return "x" * 5_000_000


@server.tool()
def picture() -> Image:
    """Return an image."""
    return Image(data=b"123456", format="png")


@server.tool()
def die() -> str:
    """End the server's process."""
    os._exit(1)


@server.tool()
async def never(context: Context) -> str:
    """Do not answer; `was_cancelled` says whether the call was cancelled."""
    await context.report_progress(1, 3, "begun")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        cancelled.append("never")
        raise
    return ""


@server.tool()
async def was_cancelled() -> list[str]:
    """Return the calls that were cancelled."""
    return cancelled


@server.tool()
async def meet(name: str) -> str:
    """Answer when two callers are here."""
    waiting.append(name)
    if len(waiting) == 2:
        met.set()
    await met.wait()
    return name


@server.tool()
async def grow(context: Context) -> str:
    """Get one more tool."""

    def more() -> str:
        """Return a word."""
        return "more"

    server.add_tool(more)
    await context.session.send_tool_list_changed()
    return "grown"


@server.resource("notes://first", description="The first note.")
def note() -> str:
    return "a note"


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        if sys.argv[1:2] == ["after"]:  # a slow start: until the file exists
            Path(sys.argv[2]).read_text()  # a FIFO
        server.run("stdio")
