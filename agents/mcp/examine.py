"""Connect to an MCP server once, to show a user its tools or the reason why it does not answer."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace

from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError

from agents.i18n import gettext as _
from agents.mcp import http
from agents.mcp.config import AddedServer
from agents.mcp.connection import MAX_RESOURCES, MAX_TOOLS, PARLEY
from agents.mcp.explaining import failure, first_of, reason
from agents.mcp.lists import ListsDispatcher, Skipped, all_pages
from agents.mcp.oauth import Bearer
from agents.mcp.sign_in import Tokens

logger = logging.getLogger(__name__)

SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class OfferedTool:
    name: str
    description: str
    is_read_only: bool


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools and the number of resources of a server. `problem` is the reason if they could not be read, else "".

    `skipped` are the tools that agents do not get, because their descriptions are invalid.
    """

    tools: tuple[OfferedTool, ...] = ()
    resources: int = 0
    problem: str = ""
    skipped: tuple[Skipped, ...] = ()


async def examine(server: AddedServer, tokens: Tokens | None = None) -> Offer:
    """Connect to a server, read its lists and disconnect, within SECONDS. Errors are returned as the `problem`."""
    auth = Bearer(tokens) if tokens is not None else None
    try:
        async with (
            asyncio.timeout(SECONDS),
            http.connect(server.config, server.headers, auth) as (incoming, outgoing),
            ClientSession(
                dispatcher=(dispatcher := ListsDispatcher(incoming, outgoing)),
                read_timeout_seconds=SECONDS,
                client_info=PARLEY,
            ) as session,
        ):
            await session.initialize()
            return replace(await _offer(session), skipped=dispatcher.skipped())
    except TimeoutError:
        return Offer(problem=_("it did not answer within {seconds} seconds", seconds=f"{SECONDS:g}"))
    except Exception as error:  # any failure of the server is the answer that the user wants to see
        if isinstance(first := first_of(error), MCPError) and not failure(first):
            logger.info("%s did not answer as an MCP server: %s", server.name, first)
            return Offer(problem=_("the address answered, but not as an MCP server does"))
        return Offer(problem=reason(error))


async def _offer(session: ClientSession) -> Offer:
    offers = session.server_capabilities
    tools = await all_pages(session.list_tools, lambda page: page.tools, MAX_TOOLS) if offers and offers.tools else []
    listed = (
        await all_pages(session.list_resources, lambda page: page.resources, MAX_RESOURCES)
        if offers and offers.resources
        else []
    )
    described = (
        OfferedTool(
            tool.name,
            " ".join((tool.description or tool.title or "").split())[:300],
            bool(tool.annotations and tool.annotations.read_only_hint),
        )
        for tool in tools
    )
    return Offer(tuple(described), len(listed))
