"""An MCP server for the tests, over stdio: `server.py`, or over streamable HTTP: `server.py http PORT`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp.types import ElicitRequestURLParams, ElicitResult, ToolAnnotations

FORM = {
    "type": "object",
    "properties": {
        "date": {"type": "string", "format": "date", "title": "Day"},
        "people": {"type": "integer", "minimum": 1, "maximum": 8, "title": "How many people", "default": 2},
        "room": {"type": "string", "oneOf": [{"const": "g", "title": "Garden"}, {"const": "h", "title": "Hall"}]},
        "vegan": {"type": "boolean", "description": "For all of them"},
        "extras": {"type": "array", "items": {"type": "string", "enum": ["music", "flowers"]}},
    },
    "required": ["date", "people"],
}

server = MCPServer("tests")
began: list[str] = []
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
    began.append("never")
    await context.report_progress(1, 3, "begun")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        cancelled.append("never")
        raise
    return ""


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def begun() -> list[str]:
    """Return the calls that have begun and are not answered."""
    return began


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


def outcome_of(answer: ElicitResult) -> str:
    """Return an answer as a text that tests can compare."""
    return f"{answer.action} {sorted((answer.content or {}).items())}"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def book(context: Context, where: str = "the inn") -> str:
    """Book a table."""
    asked: Any = context.session
    return outcome_of(await asked.elicit_form(f"When do you want to come to {where}?", FORM, context.request_id))


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def ask_twice(context: Context) -> str:
    """Ask two questions."""
    schema = {"type": "object", "properties": {"name": {"type": "string", "minLength": 2}}, "required": ["name"]}
    asked: Any = context.session
    first = await asked.elicit_form("Who are you?", schema, context.request_id)
    second = await asked.elicit_form("And who else?", schema, context.request_id)
    return f"{outcome_of(first)}, {outcome_of(second)}"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def ask_nonsense(context: Context) -> str:
    """Ask with a form that has a table in it."""
    asked: Any = context.session
    schema = {"type": "object", "properties": {"table": {"type": "object"}}}
    return outcome_of(await asked.elicit_form("What?", schema, context.request_id))


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def sign_in(context: Context, url: str = "https://pay.example.com/sign-in?a=1") -> str:
    """Let a person sign in."""
    return (await context.elicit_url("Sign in to your account.", url, "e1")).action


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def needs_page(context: Context) -> str:
    """Refuse to work before a page has been opened."""
    page = ElicitRequestURLParams(message="Accept the terms.", url="https://terms.example.com/", elicitation_id="e2")
    raise UrlElicitationRequiredError([page])


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def ask_and_leave(context: Context) -> str:
    """Ask, and return without waiting for the answer."""
    asked: Any = context.session
    schema = {"type": "object", "properties": {}}
    waiting_task = asyncio.create_task(asked.elicit_form("Still there?", schema, context.request_id))
    await asyncio.sleep(0.2)
    waiting_task.cancel()
    return "left"


@server.resource("notes://first", description="The first note.")
def note() -> str:
    return "a note"


@server.prompt()
def review(code: str, language: str = "Python") -> str:
    """Review some code."""  # shown to users
    if code == "bad":
        raise ValueError("That is no code.")
    if code in ("none", "long"):
        return "" if code == "none" else "x" * 100_001
    return f"Review this {language} code:\n{code}"


@server.resource("notes://asked/{name}")
async def asked_note(name: str, context: Context) -> str:
    asked: Any = context.session
    return outcome_of(
        await asked.elicit_form(f"Which {name}?", {"type": "object", "properties": {}}, context.request_id)
    )


@server.prompt()
def greet() -> str:
    """Say hello."""
    return "Say hello to everyone."


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        if sys.argv[1:2] == ["after"]:  # a slow start: wait until the file has content
            Path(sys.argv[2]).read_text()  # the file is a FIFO
        server.run("stdio")
