"""The tools that run the model's commands and programs in the session's sandbox."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from typing import Annotated

from pydantic import Field

from agents.errors import ToolError
from agents.i18n import gettext as _
from agents.sandbox.command import Sandbox
from agents.sandbox.files import SECONDS as SAVE_SECONDS
from agents.sandbox.files import why_full, work_on_files
from agents.sandbox.process import Ended, run
from agents.toolbox.workspace_files import sandbox_of
from agents.tools import NO_CONTEXT, ToolContext, tool

MAX_SECONDS = 600
# In characters. One argument of a program may have 128 KB, and a character has up to four bytes.
MAX_COMMAND_LENGTH = 30_000
SHORT_ENOUGH = f"at most {MAX_COMMAND_LENGTH:,} characters"
# Output of more bytes is saved to a file. The model then gets PREVIEW characters of its beginning and of its end.
MAX_OUTPUT_LENGTH = 50_000
PREVIEW = 8_000
Timeout = Annotated[int, Field(ge=1, le=MAX_SECONDS, description="Time limit in seconds")]
TIME_LIMIT = MAX_SECONDS + SAVE_SECONDS + 60


_command = partial(tool, time_limit=TIME_LIMIT, parallel=False, approval=True, foreign=True, sends_out="network")


@_command(about=_("Runs commands in the session’s sandbox"))
async def bash(
    command: Annotated[
        str,
        Field(min_length=1, max_length=MAX_COMMAND_LENGTH, description=f"Command line for Bash, {SHORT_ENOUGH}"),
    ],
    timeout: Timeout = 120,
    context: ToolContext = NO_CONTEXT,
) -> str:
    """Run a Bash command and return what it prints.

    It runs in the session's folder, which keeps its files between calls. Files that people attach are in attachments/.
    Everything else is read-only, /tmp is new in each call, and processes left in the background end with the command.
    There may be no network.
    """
    return await _run(("bash", "-c", command), context, timeout)


@_command(about=_("Runs Python programs in the session’s sandbox"))
async def python(
    code: Annotated[
        str, Field(min_length=1, max_length=MAX_COMMAND_LENGTH, description=f"Python program, {SHORT_ENOUGH}")
    ],
    timeout: Timeout = 120,
    context: ToolContext = NO_CONTEXT,
) -> str:
    """Run a Python program and return what it prints.

    It runs in the session's folder, which keeps its files between calls; variables are not kept. Files that people
    attach are in attachments/. Print what you want to know. There may be no network.
    """
    return await _run(("python3", "-c", code), context, timeout)


async def _run(command: Sequence[str], context: ToolContext, seconds: int) -> str:
    sandbox = sandbox_of(context)
    output, ended = bytearray(), Ended("failed")
    decoder = getincrementaldecoder("utf-8")(errors="replace")
    try:
        async with aclosing(run(command, sandbox, seconds=seconds, on_files=context.files_changed)) as events:
            async for event in events:
                if isinstance(event, Ended):
                    ended = event
                else:
                    output += event
                    context.report(decoder.decode(event))
    except OSError as error:
        raise ToolError(f"The sandbox is not available: {error.strerror}.") from error
    text = output.decode(errors="replace")
    if len(output) > MAX_OUTPUT_LENGTH and len(text) > 2 * PREVIEW:
        text = await _save(text, sandbox)
    context.files_changed()  # files may have changed since the last measurement
    notes = [text.rstrip("\n"), note(ended, seconds, sandbox)]
    return "\n".join(filter(None, notes)) or "[No output.]"


def note(ended: Ended, seconds: int, sandbox: Sandbox) -> str:
    """Return a note of how a command ended, or "" if it succeeded."""
    limits = sandbox.limits
    match ended.reason:
        case "exit":
            # The command may have deleted files, so the folder need not be full any more.
            why = f"The reason when it started: {why_full(ended.full, sandbox)}"
            full = f"[This command could not write files. {why}]" if ended.full else ""
            code = f"[Exit code {ended.code}]" if ended.code else ""
            return "\n".join(filter(None, (full, code)))
        case "time":
            return f"[Stopped after {seconds} seconds.]"
        case "output":
            return f"[Stopped: it printed more than {limits.output_bytes // 1_000_000} MB.]"
        case "memory":
            return f"[Stopped: it used more than {limits.memory_mb} MB of memory.]"
        case "folder" | "unmeasured" | "disk":
            return f"[Stopped. {why_full(ended.reason, sandbox)}]"
        case "failed":
            return "[The command could not be run.]"


async def _save(text: str, sandbox: Sandbox) -> str:
    """Save a long output to a file. Return its beginning and end, with a note that says how to read the rest."""
    try:
        path = await work_on_files(sandbox, "save", content=text)
        rest = f"The whole output is in {path}: read it with read_file, or with bash (sed -n 1,200p {path})."
    except ToolError as error:
        rest = f"The whole output could not be saved. {error}"
    left_out = len(text) - 2 * PREVIEW
    return f"{text[:PREVIEW]}\n[{left_out:,} of {len(text):,} characters left out. {rest}]\n{text[-PREVIEW:]}"
