"""Access tokens of the MCP servers to which users have signed in. One process at a time renews a stored token."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from agents.mcp.config import AddedServer
from agents.mcp.sign_in import Grant, SignInEnded, SignInFailed
from chat.db import Threads
from chat.queries.mcp_servers import row_id
from chat.services.people import mcp_sign_in

T = TypeVar("T")

# Seconds that one process may take to renew a token, and seconds between two checks of the others whether it has.
RENEWAL_SECONDS = 40.0
LOOK_AGAIN = 0.2
THREADS = 1


class StoredTokens:
    """The tokens of one server, an agents.mcp.sign_in.Tokens.

    It keeps the last token until it expires or is refused.
    """

    def __init__(self, server: AddedServer, threads: Threads) -> None:
        self._server = server
        self._id = row_id(server)
        self._threads = threads
        self._grant: Grant | None = None
        # Requests over the same connection share one renewal.
        self._renewing = asyncio.Lock()

    async def current(self) -> str:
        if self._grant is None or not self._grant.is_valid:
            await self._renew(self._grant.access_token if self._grant else None)
        assert self._grant is not None  # noqa: S101  # _renew
        return self._grant.access_token

    async def renew(self, refused: str) -> str:
        await self._renew(refused)
        assert self._grant is not None  # noqa: S101  # _renew
        return self._grant.access_token

    async def add_lacking(self, refused: str, scope: str) -> None:
        await self._do(mcp_sign_in.add_lacking, self._id, refused, scope)

    async def _renew(self, refused: str | None) -> None:
        """Get a valid token that is not the refused one. It can be one that another process has renewed."""
        async with self._renewing:
            while True:
                grant = await self._do(mcp_sign_in.grant_of, self._id)
                if grant is None:
                    raise SignInEnded
                if grant.access_token != refused and grant.is_valid:
                    self._grant = grant
                    return
                if await self._do(mcp_sign_in.begin_renewal, self._id, RENEWAL_SECONDS):
                    break
                await asyncio.sleep(LOOK_AGAIN)
            present = await self._do(mcp_sign_in.grant_of, self._id)
            if present == grant:
                present = await self._ask_for_grant(grant)
            else:  # another process has renewed it in between, or a user has disconnected the server
                await self._do(mcp_sign_in.give_up_renewal, self._id)
            if present is None:
                raise SignInEnded
            self._grant = present

    async def _ask_for_grant(self, grant: Grant) -> Grant | None:
        from agents.mcp.oauth import renew  # takes a second, unless the connection has already imported it

        try:
            new = await renew(self._server, grant)
        except SignInEnded:
            await self._do(mcp_sign_in.end_renewal, self._id, grant, None)
            raise
        except SignInFailed:
            await self._do(mcp_sign_in.give_up_renewal, self._id)
            raise
        return await self._do(mcp_sign_in.end_renewal, self._id, grant, new)

    async def _do(self, function: Callable[..., T], *args: object) -> T:
        return await self._threads.run_with_retry(function, *args)


class TokenStore:
    """Creates the tokens of servers. `close` ends its thread."""

    def __init__(self) -> None:
        self._threads = Threads(THREADS, "parley-mcp")

    def of(self, server: AddedServer) -> StoredTokens:
        return StoredTokens(server, self._threads)

    async def close(self) -> None:
        await self._threads.close()
