"""Parley's commands as forks of a process that has already imported it.

In a new interpreter, imports take most of a server's start, and the browser tests start about two hundred servers.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from io import TextIOWrapper
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path


class Fork:
    """A process with the methods of `subprocess.Popen` that the tests use.

    Its standard error is written to the file `errors`, or without one to `stdout`.
    """

    def __init__(
        self, command: Sequence[str], cwd: Path, environment: Mapping[str, str], errors: Path | None = None
    ) -> None:
        receiving, sending = _context().Pipe(duplex=False)
        how = (list(command), str(cwd), dict(environment), sending, errors)
        self._process = _context().Process(target=_run, args=how)
        self._process.start()
        sending.close()
        self.stdout = TextIOWrapper(os.fdopen(os.dup(receiving.fileno()), "rb"))
        receiving.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self._process.is_alive():
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        """Wait for the end and return the exit code. Raise subprocess.TimeoutExpired after `timeout` seconds."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return self._process.exitcode


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.template"])
    return context


def _run(command: list[str], cwd: str, environment: dict[str, str], output: Connection, errors: Path | None) -> None:
    """Run the program in the forked process, with its own environment, output and arguments."""
    from tests.support.template import take_settings  # imported before the fork

    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    output.close()
    if errors is not None:
        with errors.open("w") as file:
            os.dup2(file.fileno(), 2)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115  # the process's stdout, open until it exits
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115  # likewise
    sys.path[0:1] = [cwd]
    sys.argv = command  # the settings read it
    take_settings()
    runpy.run_path(command[0], run_name="__main__")
