"""The task of a connection to an MCP server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar

from agents.mcp.connection import Connection, Streams

session: ContextVar[str] = ContextVar("session", default="")


async def test_connection_has_no_context_of_the_session_that_opened_it() -> None:
    """OPS-03: log lines of a connection, which serves all sessions of a process, name none of them."""
    seen = asyncio.get_running_loop().create_future()

    @asynccontextmanager
    async def connect(on_end: Callable[[], None]) -> AsyncIterator[Streams]:
        seen.set_result(session.get())
        await asyncio.Event().wait()
        yield None, None

    session.set("s_1")
    opened = Connection("notes", connect)
    async with asyncio.timeout(30):
        assert await seen == ""
    await opened.close()
