"""Commands that are run in a sandbox to their end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

from agents.sandbox.command import Sandbox
from agents.sandbox.process import Ended, run


class Outcome(NamedTuple):
    ended: Ended
    output: str


async def finish(sandbox: Sandbox, *command: str, seconds: float = 20.0, stdin: bytes = b"") -> Outcome:
    """Run a command to its end, and return how it ended and its output."""
    output, ended = b"", Ended("failed")
    async with aclosing(run(command, sandbox, seconds=seconds, stdin=stdin)) as events:
        async for event in events:
            if isinstance(event, Ended):
                ended = event
            else:
                output += event
    return Outcome(ended, output.decode(errors="replace"))


async def bash(sandbox: Sandbox, command: str, seconds: float = 20.0) -> Outcome:
    return await finish(sandbox, "bash", "-c", command, seconds=seconds)


async def python(sandbox: Sandbox, code: str, arguments: Sequence[str] = ()) -> Outcome:
    return await finish(sandbox, "python3", "-c", code, *arguments)


class LifeLine:
    """A named pipe in the workspace. `is_cut` is true when no process of the sandbox has it open for writing."""

    def __init__(self, workspace: Path) -> None:
        path = workspace / "life-line"
        os.mkfifo(path)
        path.chmod(0o666)
        self.descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def is_cut(self) -> bool:
        try:
            return os.read(self.descriptor, 1) == b""
        except BlockingIOError:
            return False
