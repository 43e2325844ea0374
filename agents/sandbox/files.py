"""Work on the files of a workspace from within its sandbox.

So a link, a pipe or a folder that is replaced in the middle of the work leads nowhere: nothing outside is there. A
regular expression that never ends, and files of any size, meet the limits of commands.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from pathlib import Path

from agents.errors import ToolError
from agents.sandbox.command import Sandbox
from agents.sandbox.process import Ended, run

PROGRAM = Path(__file__).with_name("file_program.py").read_text(encoding="utf-8")
COMMAND = ("python3", "-I", "-S", "-B", "-X", "utf8", "-c", PROGRAM)
SECONDS = 30.0
_OVER = {
    "time": f"It took longer than {SECONDS:g} seconds.",
    "memory": "It took more memory than a command may use.",
    "disk": "The workspace is full. Delete files first.",
    "output": "The result is too long.",
}


async def work_on_files(sandbox: Sandbox, action: str, **arguments: str | int) -> str:
    """Do what `file_program` calls `action`, and return its text. Raises ToolError."""
    request = json.dumps({"do": action, **arguments}).encode()
    output, ended = b"", Ended("failed")
    try:
        async with aclosing(run(COMMAND, sandbox, seconds=SECONDS, stdin=request)) as events:
            async for event in events:
                if isinstance(event, Ended):
                    ended = event
                else:
                    output += event
    except OSError as error:
        raise ToolError(f"The workspace is not available: {error.strerror}.") from error
    if ended.reason in _OVER:
        raise ToolError(_OVER[ended.reason])
    try:
        answer = json.loads(output)
    except ValueError:  # the program itself failed
        raise ToolError("The files could not be worked on.") from None
    if "error" in answer:
        raise ToolError(str(answer["error"]))
    return str(answer["text"])
