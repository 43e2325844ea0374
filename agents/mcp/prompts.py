"""The prompts of MCP servers: their list, and the text of a prompt that a user has chosen."""

from __future__ import annotations

import re

import mcp_types as types
from mcp.shared.exceptions import MCPError

from agents.errors import ToolError
from agents.mcp.config import SEPARATOR
from agents.mcp.connection import Connection
from agents.mcp.explaining import explanation
from agents.mcp.pool import OfferedPrompt, PromptRefusedError
from agents.safe_text import clean

MAX_TITLE_LENGTH = 200
MAX_ARGUMENTS = 20
# Names that a user can type after a "/".
_NAME = re.compile(r"[^\s/]{1,80}")


def prompts_of(connection: Connection) -> list[OfferedPrompt]:
    """Return the prompts of a server, sorted by name."""
    found = []
    for prompt in sorted(connection.prompts, key=lambda each: each.name):
        arguments = (prompt.arguments or [])[:MAX_ARGUMENTS]
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
    """Return the text of all messages of a prompt.

    Raise PromptRefusedError if the server refuses, and ToolError if it cannot be asked.
    """
    try:
        filled = await connection.prompt(name, arguments)
    except ToolError as error:
        cause = error.__cause__
        if isinstance(cause, MCPError) and not explanation(cause):
            raise PromptRefusedError(str(error), _line(cause.message)) from cause
        raise
    parts = [_text(message.content) for message in filled.messages]
    return clean("\n\n".join(part for part in parts if part))


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
    return clean(" ".join(text.split()))[:MAX_TITLE_LENGTH]
