"""The prompts of MCP servers, as people choose them and fill them in."""

from __future__ import annotations

import re

import mcp_types as types
from mcp.shared.exceptions import MCPError

from agents.errors import ToolError
from agents.mcp.config import SEPARATOR
from agents.mcp.connection import Connection, is_closed
from agents.mcp.pool import OfferedPrompt, PromptRefusedError
from agents.safe_text import clean

LONGEST_PROMPT = 100_000
LONGEST_TITLE = 200
MOST_ARGUMENTS = 20
# Names that a person can type behind a "/".
_NAME = re.compile(r"[^\s/]{1,80}")


def prompts_of(connection: Connection) -> list[OfferedPrompt]:
    """Return the prompts of a server, by name."""
    found = []
    for prompt in sorted(connection.prompts, key=lambda each: each.name):
        arguments = (prompt.arguments or [])[:MOST_ARGUMENTS]
        if _NAME.fullmatch(prompt.name):
            found.append(
                OfferedPrompt(
                    f"{connection.name}{SEPARATOR}{prompt.name}",
                    _line(prompt.description or prompt.title or prompt.name),
                    tuple((each.name, _line(each.description or ""), bool(each.required)) for each in arguments),
                )
            )
    return found


async def fill(connection: Connection, name: str, arguments: dict[str, str]) -> str:
    """Return the text of a prompt: of all of its messages. Raises PromptRefusedError, ToolError."""
    try:
        filled = await connection.prompt(name, arguments)
    except ToolError as error:
        said = error.__cause__
        if isinstance(said, MCPError) and not is_closed(said):
            raise PromptRefusedError(str(error), _line(said.message)) from said
        raise
    parts = [_text(message.content) for message in filled.messages]
    return clean("\n\n".join(part for part in parts if part))[:LONGEST_PROMPT]


def _text(content: types.ContentBlock) -> str:
    match content:
        case types.TextContent():
            return content.text
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            return resource.text
        case types.ResourceLink():
            return content.uri
        case _:
            return ""


def _line(text: str) -> str:
    return clean(" ".join(text.split()))[:LONGEST_TITLE]
