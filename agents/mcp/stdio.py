"""The transport to an MCP server that is a program: messages over its input and output, one per line."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from agents.mcp.config import ServerConfig
from agents.mcp.connection import Streams
from agents.mcp.unstorable import storable_json
from agents.sandbox.command import ENVIRONMENT, PATH, Sandbox
from agents.sandbox.process import serve

logger = logging.getLogger(__name__)

READ_SIZE = 1 << 16
# A longer message ends the connection.
MAX_BYTES = 4_000_000
# The bytes of a server's error output that are kept, and the characters of its last line in a log entry.
LAST_WORDS = 1_000
LAST_LINE = 200
TERMINAL_CODES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
# The seconds that a server has to end by itself after its input is closed, and the seconds to wait after it is killed.
END_SECONDS = 0.5
KILLED_SECONDS = 10.0

Reading = MemoryObjectSendStream[SessionMessage | Exception]
Writing = MemoryObjectReceiveStream[SessionMessage]


@asynccontextmanager
async def connect(
    server: ServerConfig, values: Mapping[str, str], sandbox: Sandbox | None, on_end: Callable[[], None]
) -> AsyncIterator[Streams]:
    """Run a server's program, in the sandbox if one is given. The process is ended at the end of the context.

    `on_end` is called when the program can send no more messages. Errors get its last line of error output as a note.
    """
    async with _running(server, values, sandbox) as process:
        to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        words = bytearray()
        last_words = asyncio.create_task(_keep_last_words(process, words))
        reader = asyncio.create_task(_read(process, to_session))
        reader.add_done_callback(lambda task: on_end())
        tasks = [
            reader,
            asyncio.create_task(_write(process, from_session)),
            last_words,
        ]
        try:
            yield incoming, outgoing
        except Exception as error:
            await asyncio.wait([last_words], timeout=END_SECONDS)
            if line := _last_line(words):
                error.add_note(line)
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for stream in (to_session, incoming, outgoing, from_session):
                stream.close()
            if words:
                logger.debug("The last error output of an MCP server: %s", words.decode(errors="replace"))


@asynccontextmanager
async def _running(server: ServerConfig, values: Mapping[str, str], sandbox: Sandbox | None) -> AsyncIterator[Process]:
    if sandbox is not None:
        async with serve(server.command, sandbox, values) as process:
            yield process
        return
    # Without a sandbox, the program gets HOME and PATH of Parley's account, but no other variables of Parley.
    environment = {**ENVIRONMENT, "HOME": str(Path.home()), "PATH": os.environ.get("PATH", PATH), **values}
    process = await asyncio.create_subprocess_exec(
        *server.command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment, start_new_session=True
    )
    try:
        yield process
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            await _end_of(process, END_SECONDS)
        finally:  # also if this task is cancelled during the wait
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await _end_of(process, KILLED_SECONDS)


async def _end_of(process: Process, seconds: float) -> None:
    """Wait for the end of a process's output and then of the process, for at most `seconds` in all."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            for output in filter(None, (process.stdout, process.stderr)):
                while await output.read(READ_SIZE):
                    pass
            await process.wait()


async def _read(process: Process, messages: Reading) -> None:
    """Pass messages to the session until the output ends.

    A line that is not a message ends the connection, because the lines after it cannot be trusted.
    """
    assert process.stdout is not None  # noqa: S101  # a pipe
    buffer = bytearray()
    async with messages:
        while chunk := await process.stdout.read(READ_SIZE):
            *lines, rest = (bytes(buffer) + chunk).split(b"\n") if b"\n" in chunk else (buffer + chunk,)
            buffer = bytearray(rest)
            for line in lines:
                if line.strip() and not await _pass_on(line, messages):
                    return
            if len(buffer) > MAX_BYTES:
                logger.warning("An MCP server sent a message of more than %s bytes", f"{MAX_BYTES:,}")
                return


async def _pass_on(line: bytes, messages: Reading) -> bool:
    try:
        message = jsonrpc_message_adapter.validate_json(storable_json(line), by_name=False)
    except ValueError:
        logger.warning("An MCP server wrote a line that is not a message: %.200r", line)
        return False
    try:
        await messages.send(SessionMessage(message))
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        return False
    return True


async def _write(process: Process, messages: Writing) -> None:
    assert process.stdin is not None  # noqa: S101  # a pipe
    async with messages:
        async for message in messages:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(line.encode() + b"\n")
            try:
                await process.stdin.drain()
            except OSError:
                return


def _last_line(words: bytes | bytearray) -> str:
    """Return the last line of an error output that is not empty, for a log entry."""
    text = TERMINAL_CODES.sub("", words.decode(errors="replace"))
    lines = ("".join(filter(str.isprintable, line)).strip() for line in reversed(text.splitlines()))
    line = next(filter(None, lines), "")
    return line.rstrip(".") if len(line) <= LAST_LINE else f"{line[:LAST_LINE]}…"


async def _keep_last_words(process: Process, words: bytearray) -> None:
    assert process.stderr is not None  # noqa: S101  # a pipe
    while chunk := await process.stderr.read(READ_SIZE):
        words += chunk
        del words[:-LAST_WORDS]
