"""A connection to an MCP server, which its own task keeps open."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import Context
from typing import Any, NoReturn, TypeVar

import anyio
import mcp_types as types
from mcp.client.session import ClientSession, IncomingMessage
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from agents.errors import ToolError
from agents.mcp.asking import Ask, Questions
from agents.mcp.calls import LenientSession
from agents.mcp.explaining import CLOSED, NOT_FOUND, explanation, first_of, has_no_session, needs_sign_in, reason
from agents.mcp.lists import LISTS, ListsDispatcher, all_pages, named, problem_of
from agents.tools import Tool

logger = logging.getLogger(__name__)

# The seconds for each request except tool calls: for the lists, and for the handshake, which waits until a program has
# started.
ANSWER_SECONDS = 30.0
# The seconds for which a turn waits for the tools of a server that is started for the first time.
FIRST_WAIT = 2.0
# Seconds for which a call whose connection has ended waits for the reason.
REASON_WAIT = 3.0
# The seconds before each new attempt; the last number is repeated. After a connection that lasted longer than STABLE
# seconds, the first number is used again.
PAUSES = (0.0, 1.0, 5.0, 30.0, 120.0)
STABLE = 60.0
# The seconds from one reading of the lists to the next, because a server may report a change with each reading.
LIST_PAUSE = 1.0
# A call ends a pause early, but never before this many seconds.
MIN_PAUSE = 1.0
MAX_TOOLS = 200
MAX_RESOURCES = 200
MAX_PROMPTS = 200
# What models read if it is unknown whether the server has executed a call.
CHECK = "If it changes something, check whether it did before you repeat it."
PARLEY = types.Implementation(name="Parley", version="1")

CHANGES = (
    types.ToolListChangedNotification,
    types.ResourceListChangedNotification,
    types.PromptListChangedNotification,
)

# The streams of incoming and outgoing messages. Their types are in a private module of the SDK.
Streams = tuple[Any, Any]
# Opens the transport. The transport must call the given function when it finds that the connection has ended.
Connect = Callable[[Callable[[], None]], AbstractAsyncContextManager[Streams]]
Result = TypeVar("Result")


def is_end_of_connection(error: MCPError) -> bool:
    """Return whether the SDK reports that the connection has ended.

    The code alone does not show this, because servers use the same code for their own errors.
    """
    return error.code == types.CONNECTION_CLOSED and error.message == CLOSED


class _SessionEndedError(ToolError):
    """The server has not executed a request, because it has ended the session, for example by a restart."""


class Connection:
    """A connection that is opened again until `close`, with up-to-date lists of tools, resources and prompts.

    Use it on the event loop on which it was made. `tools`, `resources` and `prompts` may be read from any thread. While
    the server is not connected, they keep their last value.
    """

    def __init__(self, name: str, connect: Connect, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        self.name = name
        self.tools: tuple[types.Tool, ...] = ()
        self.resources: tuple[types.Resource, ...] = ()
        self.prompts: tuple[types.Prompt, ...] = ()
        self.has_resources = False
        # Parley's tools for these lists, and what they were made from (agents.mcp.tools).
        self.made_tools: tuple[object, Sequence[Tool]] | None = None
        self._connect = connect
        self._answer_seconds = answer_seconds
        self._session: ClientSession | None = None
        self._problem = ""
        # The server's name if the problem is in its words, else "".
        self._problem_origin = ""
        # The invalid items of each list, as they were logged.
        self._skipped: dict[str, str] = {}
        # Cleared while an attempt to connect is running or about to start.
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
        self._first_wait_end = loop.time() + FIRST_WAIT
        # Without the context of the session that opens it, because the connection serves other sessions later.
        self._task = loop.create_task(self._stay_connected(), name=f"MCP server {name}", context=Context())

    def note_use(self) -> None:
        """Record that an agent uses the server now. May be called from any thread."""
        self._used_at = time.monotonic()

    def is_idle(self, seconds: float) -> bool:
        """Return whether no call is running and no agent has used the server for this many seconds."""
        return not self._calls and time.monotonic() - self._used_at >= seconds

    async def settle(self) -> bool:
        """Wait for the first attempt to connect, until FIRST_WAIT seconds after it began.

        Return whether it waited: False if the attempt or its time was over before.
        """
        if self._settled.is_set() or asyncio.get_running_loop().time() >= self._first_wait_end:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._first_wait_end):
                await self._settled.wait()
        return True

    async def call(
        self, tool: str, arguments: dict[str, Any], report: Callable[[str], None], ask: Ask | None = None
    ) -> types.CallToolResult:
        """Call a tool by the server's name for it. Raise ToolError. Cancelling this also cancels the server's work.

        `ask` asks users the server's questions during the call; None if no user is present.
        """

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
            report(f"{share}: {message}\n" if message else f"{share}\n")

        async def call() -> types.CallToolResult:
            session = await self._wait_for_session()
            with self._questions.during_call(ask):
                # The tool's own time limit applies to the call. The limit of the session is for short requests.
                sent = session.call_tool(tool, arguments, float("inf"), on_progress)
                try:
                    return await self._await_answer(session, sent, is_call=True)
                except MCPError as error:  # the server requires that a user opens a page first
                    raise ToolError(await self._questions.open_pages(error, ask)) from error

        try:
            return await call()
        except _SessionEndedError:
            return await call()

    async def read(self, uri: str) -> types.ReadResourceResult:
        """Read a resource. Raise ToolError."""
        session = await self._wait_for_session()
        with self._questions.during_call(None):
            return await self._await_answer(session, session.read_resource(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> types.GetPromptResult:
        """Fill in a prompt. Raise ToolError."""
        session = await self._wait_for_session()
        with self._questions.during_call(None):
            return await self._await_answer(session, session.get_prompt(name, arguments))

    async def close(self) -> None:
        """End the connection and the server's program. Calls that wait for an answer fail."""
        self._is_closed = True
        tasks = [self._task, *self._probes]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        self._session = None
        self._settled.set()

    async def _wait_for_session(self) -> ClientSession:
        """Return the session. If there is none, wait for an attempt to connect. Raise ToolError if that fails."""
        if self._session is None and not self._is_closed:
            self._settled.clear()
            self._wanted.set()
            await self._settled.wait()
        if self._session is None:
            problem = self._problem or "its connection was closed"
            raise ToolError(f"The MCP server {self.name} is not available now: {problem}.", origin=self._problem_origin)
        return self._session

    async def _await_answer(
        self, session: ClientSession, request: Coroutine[Any, Any, Result], *, is_call: bool = False
    ) -> Result:
        self._calls += 1
        try:
            return await request
        except MCPError as error:
            if is_end_of_connection(error):
                self._end(session)
                raise ToolError(await self._explain_end(), origin=self._problem_origin) from error
            if error.code == types.URL_ELICITATION_REQUIRED and is_call:
                raise
            if has_no_session(error):
                self._end(session)
                raise _SessionEndedError(f"The MCP server {self.name} has ended the session. Try again.") from error
            self._probe(session)
            if words := explanation(error):
                check = "" if needs_sign_in(error) else f" {CHECK}"
                raise ToolError(f"The request to the MCP server {self.name} failed: {words}.{check}") from error
            words = f"The MCP server {self.name} refused the request: {error.message}"
            raise ToolError(words, origin=self.name) from error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            self._end(session)
            raise ToolError(f"The connection to the MCP server {self.name} has ended. Try again.") from error
        except (ValidationError, RuntimeError) as error:
            problem = f" ({problem_of(error)})" if isinstance(error, ValidationError) else ""
            words = f"The MCP server {self.name} answered with an invalid result{problem}."
            raise ToolError(f"{words} {CHECK}" if is_call else words, origin=self.name) from error
        finally:
            self._calls -= 1
            self.note_use()

    async def _explain_end(self) -> str:
        """Return the error text of a request whose connection ended. Wait for up to REASON_WAIT seconds for the reason.

        A program, for example, only closes the connection. The next attempt to connect fails with the reason.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(REASON_WAIT):
                await self._settled.wait()
        known = self._problem if self._settled.is_set() and self._session is None else ""
        return f"The connection to the MCP server {self.name} ended before it answered{f': {known}' if known else ''}."

    def _probe(self, session: ClientSession) -> None:
        """Check whether a connection on which a request failed still works. Connect again if it does not."""

        async def ping() -> None:
            try:
                try:
                    await session.send_ping()
                except MCPError as error:
                    # Even a server without ping, or one that requires a sign-in, has answered.
                    if error.code != types.METHOD_NOT_FOUND and not needs_sign_in(error):
                        raise
                    if error.message == NOT_FOUND:  # the server may lack ping, or no longer be at its address
                        await session.list_tools()
            except Exception:
                self._end(session)

        task = asyncio.create_task(ping(), name=f"ping MCP server {self.name}")
        self._probes.add(task)
        task.add_done_callback(self._probes.discard)

    async def _stay_connected(self) -> None:
        """Connect, and connect again after each end, with pauses while that fails."""
        loop, failures = asyncio.get_running_loop(), 0
        while True:
            began = loop.time()
            try:
                await self._serve()
            except Exception as error:
                problem, notes = reason(error), getattr(error, "__notes__", ())
                cause = first_of(error)
                is_quoted = isinstance(cause, MCPError) and not explanation(cause)
                self._problem_origin = self.name if is_quoted else ""
            failures = 1 if loop.time() - began > STABLE else failures + 1
            self._session = None
            if problem != self._problem:
                # The program's error output is for operators only. Users and models get the problem without it.
                output = "".join(f" Its last error output: {note}." for note in notes)
                logger.warning(
                    "The MCP server %s is not available: %s. Parley keeps trying to connect.%s",
                    self.name,
                    problem,
                    output,
                )
            self._problem = problem
            if self._is_closed:  # this error was raised instead of CancelledError
                return
            if pause := PAUSES[min(failures, len(PAUSES)) - 1]:
                self._settled.set()
                self._wanted.clear()
                await asyncio.sleep(MIN_PAUSE)
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause - MIN_PAUSE):
                        await self._wanted.wait()
            self._settled.clear()

    async def _serve(self) -> NoReturn:
        """Connect, and keep the lists up to date. Raise ConnectionError at the end of the connection."""
        self._has_ended = False
        self._news.clear()
        async with (
            self._connect(self._on_end) as (incoming, outgoing),
            LenientSession(
                dispatcher=(dispatcher := ListsDispatcher(incoming, outgoing)),
                read_timeout_seconds=self._answer_seconds,
                message_handler=self._on_message,
                elicitation_callback=self._questions.answer,
                client_info=PARLEY,
            ) as session,
        ):
            await session.initialize()
            await self._list(session, dispatcher)
            self._session, self._problem, self._problem_origin = session, "", ""
            self._settled.set()
            loop = asyncio.get_running_loop()
            may_list_at = loop.time()
            while True:
                await self._wait_for_news()
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(may_list_at):
                        while True:
                            await self._wait_for_news()
                may_list_at = loop.time() + LIST_PAUSE
                await self._list(session, dispatcher)

    async def _wait_for_news(self) -> None:
        """Wait until the server reports a changed list. Raise ConnectionError if the connection has ended."""
        await self._news.wait()
        self._news.clear()
        if self._has_ended:
            raise ConnectionError("its connection ended")

    async def _list(self, session: ClientSession, dispatcher: ListsDispatcher) -> None:
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
        self._warn_of_skipped(dispatcher)

    def _warn_of_skipped(self, dispatcher: ListsDispatcher) -> None:
        """Log which items of the lists were left out, and why, unless the log has it already."""
        skipped = {kind: invalid for method, kind in LISTS.items() if (invalid := named(dispatcher.skipped(method)))}
        for kind, invalid in skipped.items():
            if self._skipped.get(kind) != invalid:
                logger.warning("Invalid %s of the MCP server %s are left out: %s", kind, self.name, invalid)
        self._skipped = skipped

    async def _beside_tools(
        self, kind: str, ask: Callable[..., Any], items: Callable[[Any], list[Any]], most: int
    ) -> list[Any]:
        """Return a list that tools do not depend on. If the server refuses it, log a warning and return []."""
        try:
            return await all_pages(ask, items, most)
        except (MCPError, ValidationError, RuntimeError) as error:
            if isinstance(error, MCPError) and is_end_of_connection(error):
                raise
            logger.warning("The MCP server %s did not list its %s: %s", self.name, kind, reason(error))
            return []

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, CHANGES):
            self._news.set()

    def _end(self, session: ClientSession) -> None:
        """Connect again, unless the session has already been replaced."""
        if session is self._session:
            self._on_end()

    def _on_end(self) -> None:
        self._session = None
        self._settled.clear()
        self._has_ended = True
        self._news.set()
