"""The MCP servers of a process: one connection to each, opened when an agent first needs it."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from agents.mcp.config import ServerConfig, is_chosen, missing_variables, resolved, server_of
from agents.sandbox import probe
from agents.sandbox.command import PATH, Sandbox
from agents.tools import Tool

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

    from agents.mcp.connection import Connection

# Gives the sandbox of a server by its name, with a network or without.
SandboxOf = Callable[[str, bool], Sandbox]


class Servers:
    """The configured servers. `tools` and `unsettled` may be called from any thread; all else on the event loop."""

    def __init__(
        self, servers: Mapping[str, ServerConfig], env: Mapping[str, str], sandbox_of: SandboxOf | None = None
    ) -> None:
        self._servers = servers
        self._env = env
        self._sandbox_of = sandbox_of
        self._loop: asyncio.AbstractEventLoop | None = None
        self._needed: set[str] = set()
        self._opening = threading.Lock()
        self._connections: dict[str, Connection] = {}

    def open(self) -> None:
        """Let connections be opened on the running event loop. Before that, servers have no tools."""
        self._loop = asyncio.get_running_loop()

    def tools(self, patterns: Iterable[str]) -> tuple[Tool, ...]:
        """Return the tools that these names and patterns choose, as far as they are known. Does not wait.

        Servers that are needed for the first time are connected in the background.
        """
        wanted = list(patterns)
        found: list[Tool] = []
        for name in self._named(wanted):
            self._need(name)
            if connection := self._connections.get(name):
                from agents.mcp.tools import tools_of  # takes a second to import, as `_open` has done

                found += [tool for tool in tools_of(connection, self._servers[name]) if is_chosen(tool.name, wanted)]
        return tuple(found)

    async def settle(self, patterns: Iterable[str]) -> bool:
        """Wait for servers that have just been started for the first time, at most connection.FIRST_WAIT seconds.

        Returns whether there was one to wait for, whose tools may be known now.
        """
        named = [self._connections[name] for name in self._named(patterns) if name in self._connections]
        return any(await asyncio.gather(*(connection.settle() for connection in named)))

    def problems(self) -> Iterator[tuple[str, str]]:
        """Find servers that cannot work on this machine: their names, and why. Asks no server."""
        for name, server in self._servers.items():
            for variable in missing_variables(server, self._env):
                yield name, f"the environment variable {variable} is not set"
            if not server.command:
                continue
            if server.sandbox and (problem := probe.problem()):
                yield name, f"there is no sandbox for its program: {problem}"
            elif not shutil.which(server.command[0], path=PATH if server.sandbox else None):
                yield name, f"the program {server.command[0]} is not installed"

    async def close(self) -> None:
        """End all connections."""
        self._loop = None
        connections, self._connections = self._connections, {}
        self._needed.clear()
        await asyncio.gather(*(connection.close() for connection in connections.values()))

    def _named(self, patterns: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(filter(None, (server_of(pattern, self._servers) for pattern in patterns))))

    def _need(self, name: str) -> None:
        with self._opening:
            if self._loop is None or name in self._needed:
                return
            self._needed.add(name)

            self._loop.call_soon_threadsafe(self._open, name)

    def _open(self, name: str) -> None:
        from agents.mcp.connection import Connection

        if self._loop is None:  # closed in the meantime
            return

        def connect(on_end: Callable[[], None]) -> AbstractAsyncContextManager[TransportStreams]:
            return self._transport(name, on_end)

        self._connections[name] = Connection(name, connect)

    def _transport(self, name: str, on_end: Callable[[], None]) -> AbstractAsyncContextManager[TransportStreams]:
        from agents.mcp import http, stdio

        server = self._servers[name]
        if server.url is not None:
            return http.connect(server, resolved(server.headers, self._env))
        sandbox = self._sandbox_of(name, server.network) if server.sandbox and self._sandbox_of else None
        if server.sandbox and sandbox is None:
            raise OSError("there is no sandbox for its program")
        return stdio.connect(server, resolved(server.env, self._env), sandbox, on_end)
