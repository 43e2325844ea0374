"""Processes of a team that a test kills, freezes and restarts."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import STDOUT, Popen

from tests.commands.process import ROOT, environment
from tests.support.prepared import copy
from tests.support.redis import free_port


class Member:
    """A process with its own data folder, which keeps its name, folder and port over restarts."""

    def __init__(
        self, name: str, command: Sequence[str], folder: Path, prepared: Path, settings: Mapping[str, str]
    ) -> None:
        copy(prepared, folder / name)  # compressing the static files takes most of a first start
        self.name = name
        self.port = free_port()
        self.log = folder / f"{name}.log"
        self._command = [sys.executable, "manage.py", *command]
        self._environment = environment(folder / name, **{**settings, "PORT": str(self.port)})
        self._process: Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} has not been started"
        return self._process.pid

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = Popen(self._command, cwd=ROOT, env=self._environment, stdout=log, stderr=STDOUT)

    def send_signal(self, how: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)

    async def end(self, how: signal.Signals) -> None:
        """Send a signal and wait for the end of the process."""
        self.send_signal(how)
        if self._process is not None:
            await asyncio.to_thread(self._process.wait, 60)

    async def restart(self, how: signal.Signals) -> None:
        await self.end(how)
        self.start()

    def kill(self) -> None:
        """Kill the process, even if it is frozen."""
        self.send_signal(signal.SIGCONT)
        self.send_signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
