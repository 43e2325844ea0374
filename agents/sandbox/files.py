"""Work on the files of a workspace from within its sandbox.

Links, pipes and folders that are replaced during the work do no harm, because the sandbox has no files of the host. The
limits of commands also apply to regular expressions that never end, and to very large files.
"""

from __future__ import annotations

import errno
import json
from contextlib import aclosing
from pathlib import Path

from agents.errors import ToolError
from agents.sandbox.command import Sandbox
from agents.sandbox.process import Ended, Reason, run
from agents.sandbox.usage import MAX_DEPTH

PROGRAM = Path(__file__).with_name("file_program.py").read_text(encoding="utf-8")
COMMAND = ("python3", "-I", "-S", "-B", "-X", "utf8", "-c", PROGRAM)
SECONDS = 30.0
_OVER = {
    "time": f"It took longer than {SECONDS:g} seconds.",
    "memory": "It took more memory than a command may use.",
    "output": "The result is too long.",
}


async def work_on_files(sandbox: Sandbox, action: str, **arguments: str | int) -> str:
    """Run an action of `file_program` and return its text. Raise ToolError."""
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
        raise ToolError(f"The session's folder is not available: {error.strerror}.") from error
    if reason := _OVER.get(ended.reason) or why_full(ended.reason, sandbox):
        raise ToolError(reason)
    try:
        answer = json.loads(output)
    except ValueError:  # the program itself failed
        raise ToolError("The file operation failed.") from None
    if "error" in answer:
        # In a full workspace, the kernel lets no file grow.
        full = ended.full and answer.get("number") == errno.EFBIG
        raise ToolError(why_full(ended.full, sandbox) if full else str(answer["error"]))
    return str(answer["text"])


def why_full(reason: Reason | None, sandbox: Sandbox) -> str:
    """Return a text for the model that says why it cannot write files, or "" if the reason is another one."""
    limits = sandbox.limits
    match reason:
        case "folder":
            size = f"more than {limits.workspace_mb} MB or more than {limits.workspace_files:,} files"
            return f"The session's folder has {size}. Delete some files."
        case "unmeasured":
            return (
                "The session's folder has a folder that cannot be read, or more than "
                f"{MAX_DEPTH} levels of folders. Run chmod -R u+rwX . with bash, or delete the deepest folders."
            )
        case "disk":
            return "The disk of this machine is almost full."
        case _:
            return ""
