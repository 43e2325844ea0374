"""A check of whether this machine can run commands in a sandbox. It runs one command, once per process."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import threading
from contextlib import aclosing
from functools import cache
from pathlib import Path

from agents.sandbox.command import PATH, Sandbox
from agents.sandbox.process import Ended, run

PROGRAMS = {"bwrap": "bubblewrap", "bash": "bash", "python3": "python3", "prlimit": "util-linux", "choom": "util-linux"}
SECONDS = 10.0
MAX_REASON_LENGTH = 300
EXPECTED = b"it works\n"
_COMMAND = ("bash", "-c", "python3 -I -S -c 'print(\"it works\")'")
_probing = threading.Lock()


def problem() -> str:
    """Return why commands cannot run in a sandbox here, or "" if they can. The first call blocks for a moment."""
    with _probing:
        return _problem()


@cache
def _problem() -> str:
    if sys.platform != "linux":
        return "sandboxes require Linux"
    missing = [package for name, package in PROGRAMS.items() if shutil.which(name, path=PATH) is None]
    if missing:
        return f"these programs are not installed: {', '.join(dict.fromkeys(missing))}"
    reasons: list[str] = []
    # In a new thread, because the caller's thread may have a running event loop.
    thread = threading.Thread(target=lambda: reasons.append(_try()), name="try a sandbox", daemon=True)
    thread.start()
    thread.join()
    return reasons[0] if reasons else "testing it failed"


def _try() -> str:
    with tempfile.TemporaryDirectory() as folder:
        try:
            ended, output = asyncio.run(_run(Sandbox(Path(folder) / "workspace")))
        except OSError as error:
            return str(error)
    if ended == Ended("exit", 0) and output == EXPECTED:
        return ""
    return output.decode(errors="replace").strip()[:MAX_REASON_LENGTH] or f"a command ended with {ended}"


async def _run(sandbox: Sandbox) -> tuple[Ended, bytes]:
    output, ended = b"", Ended("failed")
    async with aclosing(run(_COMMAND, sandbox, seconds=SECONDS)) as events:
        async for event in events:
            if isinstance(event, Ended):
                ended = event
            else:
                output += event
    return ended, output
