"""One connection to an MCP server, kept open in a task of its own."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.client.session import ClientSession, IncomingMessage
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from agents.errors import ToolError
from agents.mcp.asking import Ask, Questions

logger = logging.getLogger(__name__)

# Seconds for each request but tool calls: the handshake, which waits for a program's start, and the lists.
ANSWER_SECONDS = 30.0
# How long a turn waits for the tools of a server that has just been started for the first time.
FIRST_WAIT = 2.0
# Seconds before each new attempt; the last one is repeated. A connection that lived longer than STABLE begins again.
PAUSES = (0.0, 1.0, 5.0, 30.0, 120.0)
STABLE = 60.0
# A call ends a pause, but not its first second.
SHORTEST_PAUSE = 1.0
MAX_TOOLS = 200
MAX_RESOURCES = 200
MAX_PROMPTS = 200
MAX_PAGES = 20
# The SDK's message of its own error.
CLOSED = "Connection closed"
PARLEY = types.Implementation(name="Parley", version="1")

CHANGES = (
    types.ToolListChangedNotification,
    types.ResourceListChangedNotification,
    types.PromptListChangedNotification,
)

# What messages come from and go to; the SDK names the type in a private module.
Streams = tuple[Any, Any]
# Opens the transport. The function is to be called when the transport finds that the connection has ended.
Connect = Callable[[Callable[[], None]], AbstractAsyncContextManager[Streams]]
Result = TypeVar("Result")


def is_closed(error: MCPError) -> bool:
    """Return whether the SDK says that the connection has ended: servers use the same code for errors of their own."""
    return error.code == types.CONNECTION_CLOSED and error.message == CLOSED


class Connection:
    """Keeps a server connected until `close`, and knows its tools and resources.

    Use it on the event loop on which it was made. `tools`, `resources` and `prompts` may be read from any thread; they
    keep their last value while the server is away.
    """

    def __init__(self, name: str, connect: Connect, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        self.name = name
        self.tools: tuple[types.Tool, ...] = ()
        self.resources: tuple[types.Resource, ...] = ()
        self.prompts: tuple[types.Prompt, ...] = ()
        self.has_resources = False
        self._connect = connect
        self._answer_seconds = answer_seconds
        self._session: ClientSession | None = None
        self._problem = ""
        # Set unless an attempt to connect is under way, or about to begin.
        self._settled = asyncio.Event()
        # Set when a call needs a connection during a pause.
        self._wanted = asyncio.Event()
        self._news = asyncio.Event()
        self._has_ended = False
        self._is_closed = False
        self._probes: set[asyncio.Task[None]] = set()
        self._questions = Questions(name)
        loop = asyncio.get_running_loop()
        self._used_at = time.monotonic()
        self._calls = 0
        self._patience = loop.time() + FIRST_WAIT
        self._task = loop.create_task(self._keep(), name=f"MCP server {name}")

    def note_use(self) -> None:
        """Remember that an agent has the server's tools now. May be called from any thread."""
        self._used_at = time.monotonic()

    def is_idle(self, seconds: float) -> bool:
        """Whether no agent has used it for so long, and no call is under way."""
        return not self._calls and time.monotonic() - self._used_at >= seconds

    async def settle(self) -> bool:
        """Wait for the first attempt to connect, until FIRST_WAIT after it began. False if that is over already."""
        if self._settled.is_set() or asyncio.get_running_loop().time() >= self._patience:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._patience):
                await self._settled.wait()
        return True

    async def call(
        self, tool: str, arguments: dict[str, Any], report: Callable[[str], None], ask: Ask | None = None
    ) -> types.CallToolResult:
        """Call a tool by the server's name for it. Raises ToolError; cancelling it cancels the server's work.

        `ask` asks people what the server wants to know in the meantime; None if no one is there.
        """

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
            report(f"{share}: {message}\n" if message else f"{share}\n")

        session = await self._connected()
        with self._questions.during_call(ask):
            # The time limit of the tool holds for the call; the session's own is for short requests.
            call = session.call_tool(tool, arguments, read_timeout_seconds=float("inf"), progress_callback=on_progress)
            try:
                return await self._answered(session, call, is_call=True)
            except MCPError as error:  # only after a page has been opened
                raise ToolError(await self._questions.open_pages(error, ask)) from error

    async def read(self, uri: str) -> types.ReadResourceResult:
        """Read a resource. Raises ToolError."""
        session = await self._connected()
        with self._questions.during_call(None):
            return await self._answered(session, session.read_resource(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> types.GetPromptResult:
        """Fill in a prompt. Raises ToolError."""
        session = await self._connected()
        with self._questions.during_call(None):
            return await self._answered(session, session.get_prompt(name, arguments))

    async def close(self) -> None:
        """End the connection, and with it the server's program. Calls that wait for it fail."""
        self._is_closed = True
        tasks = [self._task, *self._probes]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        self._session = None
        self._settled.set()

    async def _connected(self) -> ClientSession:
        """Return the session, after a new attempt to connect if there is none. Raises ToolError."""
        if self._session is None and not self._is_closed:
            self._settled.clear()
            self._wanted.set()
            await self._settled.wait()
        if self._session is None:
            problem = self._problem or "its connection was closed"
            raise ToolError(f"The MCP server {self.name} is not available now: {problem}.")
        return self._session

    async def _answered(
        self, session: ClientSession, request: Coroutine[Any, Any, Result], *, is_call: bool = False
    ) -> Result:
        self._calls += 1
        try:
            return await request
        except MCPError as error:
            if is_closed(error):
                self._end(session)
                raise ToolError(f"The connection to the MCP server {self.name} ended before it answered.") from error
            if error.code == types.URL_ELICITATION_REQUIRED and is_call:
                raise
            self._probe(session)
            raise ToolError(f"The MCP server {self.name} refused the request: {error.message}") from error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            self._end(session)
            raise ToolError(f"The connection to the MCP server {self.name} has ended. Try again.") from error
        except (ValidationError, RuntimeError) as error:
            raise ToolError(f"The MCP server {self.name} answered with an invalid result.") from error
        finally:
            self._calls -= 1
            self.note_use()

    def _probe(self, session: ClientSession) -> None:
        """Find out whether the connection that a request failed on still works; connect again if not."""

        async def ping() -> None:
            try:
                await session.send_ping()
            except MCPError as error:
                if error.code != types.METHOD_NOT_FOUND:  # a server without it is there all the same
                    self._end(session)
            except Exception:
                self._end(session)

        task = asyncio.create_task(ping(), name=f"ping MCP server {self.name}")
        self._probes.add(task)
        task.add_done_callback(self._probes.discard)

    async def _keep(self) -> None:
        loop, failures = asyncio.get_running_loop(), 0
        while True:
            began = loop.time()
            try:
                await self._serve()
            except Exception as error:
                problem, notes = reason(error), getattr(error, "__notes__", ())
            failures = 1 if loop.time() - began > STABLE else failures + 1
            self._session = None
            if problem != self._problem:
                # What a program wrote is for the operator alone: people and models read the problem.
                said = "".join(f" Its last error output: {note}." for note in notes)
                logger.warning("MCP server %s: %s. Parley tries again from time to time.%s", self.name, problem, said)
            self._problem = problem
            if self._is_closed:  # the error has taken the place of the cancellation
                return
            if pause := PAUSES[min(failures, len(PAUSES)) - 1]:
                self._settled.set()
                self._wanted.clear()
                await asyncio.sleep(SHORTEST_PAUSE)
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause - SHORTEST_PAUSE):
                        await self._wanted.wait()
            self._settled.clear()

    async def _serve(self) -> None:
        """Connect, and keep the lists up to date. Raises ConnectionError at the end of the connection."""
        self._has_ended = False
        self._news.clear()
        async with (
            self._connect(self._on_end) as (incoming, outgoing),
            ClientSession(
                incoming,
                outgoing,
                self._answer_seconds,
                message_handler=self._on_message,
                elicitation_callback=self._questions.answer,
                client_info=PARLEY,
            ) as session,
        ):
            await session.initialize()
            await self._list(session)
            self._session, self._problem = session, ""
            self._settled.set()
            while True:
                await self._news.wait()
                self._news.clear()
                if self._has_ended:
                    raise ConnectionError("its connection ended")
                await self._list(session)

    async def _list(self, session: ClientSession) -> None:
        offers = session.server_capabilities or types.ServerCapabilities()
        tools: list[types.Tool] = []
        resources: list[types.Resource] = []
        prompts: list[types.Prompt] = []
        if offers.tools:
            tools = await all_pages(session.list_tools, lambda page: page.tools, MAX_TOOLS)
        if offers.resources:
            resources = await self._beside_tools(
                "resources", session.list_resources, lambda page: page.resources, MAX_RESOURCES
            )
        if offers.prompts:
            prompts = await self._beside_tools("prompts", session.list_prompts, lambda page: page.prompts, MAX_PROMPTS)
        self.tools, self.resources, self.has_resources = tuple(tools), tuple(resources), bool(offers.resources)
        self.prompts = tuple(prompts)

    async def _beside_tools(
        self, kind: str, ask: Callable[..., Any], items: Callable[[Any], list[Any]], most: int
    ) -> list[Any]:
        """Read a list without which the server's tools can be used: empty, with a warning, if the server refuses."""
        try:
            return await all_pages(ask, items, most)
        except (MCPError, ValidationError, RuntimeError) as error:
            if isinstance(error, MCPError) and is_closed(error):
                raise
            logger.warning("MCP server %s does not list its %s: %s", self.name, kind, reason(error))
            return []

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, CHANGES):
            self._news.set()

    def _end(self, session: ClientSession) -> None:
        """Connect again, unless that has begun already."""
        if session is self._session:
            self._on_end()

    def _on_end(self) -> None:
        self._session = None
        self._settled.clear()
        self._has_ended = True
        self._news.set()


async def all_pages(ask: Callable[..., Any], items: Callable[[Any], list[Any]], most: int) -> list[Any]:
    """Read the pages of a list."""
    found: list[Any] = []
    cursor = None
    for _ in range(MAX_PAGES):
        page = await ask(params=types.PaginatedRequestParams(cursor=cursor))
        found += items(page)
        cursor = page.next_cursor
        if cursor is None or len(found) >= most:
            break
    return found[:most]


def first_of(error: BaseException) -> BaseException:
    """Return the first of several errors at once."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def reason(error: BaseException) -> str:
    """Say in one line why a connection failed; of several errors at once, the first."""
    error = first_of(error)
    if isinstance(error, FileNotFoundError):
        return f"the program {error.filename} is not installed"
    if isinstance(error, KeyError):
        return f"the environment variable {error.args[0]} is not set"
    text = str(error).strip().splitlines()
    return (text[0][:300] if text else type(error).__name__).rstrip(".")
