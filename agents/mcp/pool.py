"""The MCP servers of a process: one connection to each, opened when an agent first needs it."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents.errors import ToolError
from agents.mcp.config import SEPARATOR, AddedServer, ServerConfig, is_chosen, missing_variables, resolved, server_of
from agents.sandbox import probe
from agents.sandbox.command import PATH, WORKSPACE, Sandbox
from agents.sandbox.visible import hidden_paths
from agents.tools import Tool

if TYPE_CHECKING:
    from agents.mcp.connection import Connection, Streams
    from agents.mcp.sign_in import Tokens

# Returns the sandbox of a server by its name, with or without a network.
SandboxOf = Callable[[str, bool], Sandbox]
# Returns the tokens of an added server to which a user has signed in.
TokensOf = Callable[[AddedServer], "Tokens"]
# Connections to added servers are closed when no agent has used them for this many seconds.
IDLE_SECONDS = 900.0
# The most seconds for which a user waits for a prompt.
PROMPT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class OfferedPrompt:
    """A prompt of a server. Each of `arguments` is (name, description, whether it is required)."""

    name: str
    title: str
    arguments: tuple[tuple[str, str, bool], ...] = ()


class PromptRefusedError(ToolError):
    """A server refuses to fill in a prompt; `reason` is the server's message."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class Servers:
    """The configured servers, and the added servers that callers pass.

    `tools` may be called from any thread. `prompts` and `fill_prompt` block, so they may not be called on the event
    loop. Call all other methods on it.
    """

    def __init__(
        self, servers: Mapping[str, ServerConfig], env: Mapping[str, str], sandbox_of: SandboxOf | None = None
    ) -> None:
        self._servers = servers
        self._env = env
        self._sandbox_of = sandbox_of
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tokens_of: TokensOf | None = None
        # For each server's id: the revision of its settings that is connected or about to be connected.
        self._needed: dict[str, str] = {}
        self._opening = threading.Lock()
        self._connections: dict[tuple[str, str], Connection] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._sweep: asyncio.TimerHandle | None = None

    def open(self, tokens_of: TokensOf | None = None) -> None:
        """Allow connections, on the running event loop. Before this call, servers have no tools."""
        self._loop = asyncio.get_running_loop()
        self._tokens_of = tokens_of

    def tools(self, patterns: Iterable[str], added: Sequence[AddedServer] = ()) -> tuple[Tool, ...]:
        """Return the tools that match these names and patterns and are known now. Does not wait.

        A server that is needed for the first time, or with new settings, is connected in the background.
        """
        wanted = list(patterns)
        found: list[Tool] = []
        for server in self._named_servers(wanted, added):
            self._need(server)
            if connection := self._connections.get(server.key):
                from agents.mcp.tools import tools_of  # late, because the SDK takes a second; `_open` has loaded it

                connection.note_use()
                found += [tool for tool in tools_of(connection, server.config) if is_chosen(tool.name, wanted)]
        return tuple(found)

    async def settle(self, patterns: Iterable[str], added: Sequence[AddedServer] = ()) -> bool:
        """Wait for servers that are started for the first time, at most connection.FIRST_WAIT seconds.

        Return whether it waited for a server. Its tools may be known now.
        """
        keys = [server.key for server in self._named_servers(patterns, added)]
        named = [self._connections[key] for key in keys if key in self._connections]
        return any(await asyncio.gather(*(connection.settle() for connection in named)))

    def prompts(self, patterns: Iterable[str], added: Sequence[AddedServer] = ()) -> list[OfferedPrompt]:
        """Return the prompts of the servers that match these names and patterns. Blocks; not for the event loop.

        Waits for servers that are just being started, as `settle` does.
        """
        wanted = list(patterns)
        self._settle_from_thread(wanted, added)
        found: list[OfferedPrompt] = []
        for server in self._named_servers(wanted, added):
            if connection := self._connections.get(server.key):
                from agents.mcp.prompts import prompts_of

                found += prompts_of(connection)
        return found

    def fill_prompt(
        self, name: str, arguments: dict[str, str], patterns: Iterable[str], added: Sequence[AddedServer] = ()
    ) -> str:
        """Return the text of a prompt with its arguments. Blocks; not for the event loop.

        Raise PromptRefusedError, and ToolError if the server cannot be asked.
        """
        server_name, _separator, prompt = name.partition(SEPARATOR)
        wanted = list(patterns)
        self._settle_from_thread(wanted, added)  # another process may have listed the prompts
        server = next((each for each in self._named_servers(wanted, added) if each.name == server_name), None)
        connection = self._connections.get(server.key) if server else None
        if connection is None or self._loop is None:
            raise ToolError(f"The MCP server {server_name} is not available now.")
        from agents.mcp.prompts import fill

        filled = asyncio.run_coroutine_threadsafe(fill(connection, prompt, arguments), self._loop)
        try:
            return filled.result(PROMPT_SECONDS)
        except TimeoutError as error:
            filled.cancel()
            raise ToolError(f"The MCP server {server_name} did not answer in time.") from error

    def _settle_from_thread(self, wanted: list[str], added: Sequence[AddedServer]) -> None:
        """Connect to the servers that match, and wait as `settle` does. Blocks; not for the event loop."""
        self.tools(wanted, added)
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(self.settle(wanted, added), self._loop).result(PROMPT_SECONDS)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield the names of servers that cannot work on this machine, with the reasons. Sends no requests."""
        for name, server in self._servers.items():
            for variable in missing_variables(server, self._env):
                yield name, f"the environment variable {variable} is not set"
            if not server.command:
                continue
            if server.sandbox and (problem := probe.problem()):
                yield name, f"its program cannot run in a sandbox: {problem}"
            elif not (program := shutil.which(server.command[0], path=PATH if server.sandbox else None)):
                yield name, f"the program {server.command[0]} is not installed"
            elif server.sandbox and self._sandbox_of:
                sandbox = self._sandbox_of(name, server.network)
                for path in hidden_paths([program, *server.command[1:]], sandbox):
                    yield (
                        name,
                        f"{path} does not exist in its sandbox, which has /usr and a folder of its own, {WORKSPACE}",
                    )

    async def close(self) -> None:
        """End all connections."""
        self._loop = None
        if self._sweep is not None:
            self._sweep.cancel()
        connections, self._connections = self._connections, {}
        self._needed.clear()
        await asyncio.gather(*(connection.close() for connection in connections.values()), *self._closing)

    def _named_servers(self, patterns: Iterable[str], added: Sequence[AddedServer]) -> list[AddedServer]:
        known = {server.name: server for server in added}
        # The operator's server takes precedence, so that a workspace cannot take over its name.
        known |= {name: AddedServer(f"configured {name}", "", name, config) for name, config in self._servers.items()}
        names = dict.fromkeys(filter(None, (server_of(pattern, known) for pattern in patterns)))
        return [known[name] for name in names]

    def _need(self, server: AddedServer) -> None:
        with self._opening:
            if self._loop is None or self._needed.get(server.id) == server.revision:
                return
            self._needed[server.id] = server.revision
            self._loop.call_soon_threadsafe(self._open, server)

    def _open(self, server: AddedServer) -> None:
        from agents.mcp.connection import Connection

        if self._loop is None:  # closed in the meantime
            return

        def connect(on_end: Callable[[], None]) -> AbstractAsyncContextManager[Streams]:
            return self._transport(server, on_end)

        for key in [key for key in self._connections if key[0] == server.id]:
            self._retire(key)
        self._connections[server.key] = Connection(server.name, connect)
        if server.revision and self._sweep is None:
            self._sweep = self._loop.call_later(IDLE_SECONDS, self._close_idle)

    def _close_idle(self) -> None:
        """Close the connections to added servers that have been idle for IDLE_SECONDS. `tools` opens them again."""
        for key in [key for key, each in self._connections.items() if key[1] and each.is_idle(IDLE_SECONDS)]:
            with self._opening:
                self._needed.pop(key[0], None)
            self._retire(key)
        has_more = self._loop is not None and any(revision for _id, revision in self._connections)
        self._sweep = self._loop.call_later(IDLE_SECONDS, self._close_idle) if self._loop and has_more else None

    def _retire(self, key: tuple[str, str]) -> None:
        task = asyncio.ensure_future(self._connections.pop(key).close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _transport(self, server: AddedServer, on_end: Callable[[], None]) -> AbstractAsyncContextManager[Streams]:
        from agents.mcp import http, stdio

        config = server.config
        if server.revision:  # an added server: `${NAME}` in its headers must not read Parley's environment
            if server.is_signed_in and self._tokens_of is not None:
                from agents.mcp.oauth import Bearer

                return http.connect(config, server.headers, Bearer(self._tokens_of(server)))
            return http.connect(config, server.headers)
        if config.url is not None:
            return http.connect(config, resolved(config.headers, self._env))
        sandbox = self._sandbox_of(server.name, config.network) if config.sandbox and self._sandbox_of else None
        if config.sandbox and sandbox is None:
            raise OSError("its program cannot run in a sandbox")
        return stdio.connect(config, resolved(config.env, self._env), sandbox, on_end)
