"""A real Parley process, started as operators do, on a free port and in its own data folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from tests.support.forked import Fork

ROOT = Path(__file__).resolve().parents[2]
# Variables of the developer's environment that must not reach the process.
UNSET = (
    "PYTHONDONTWRITEBYTECODE",  # compiling takes a fifth of each start
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "ANTHROPIC_BASE_URL",
    "DATABASE_URL",
    "REDIS_URL",
)
START_SECONDS = 240  # a busy machine takes minutes
Process = subprocess.Popen[str] | Fork


def inherited() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in UNSET}


def run_forked(*command: str, data: Path) -> str:
    """Run a Python file in a fork, with a server's data folder. Return its last line of output. Raise RuntimeError."""
    process = Fork(command, ROOT, {**inherited(), "PARLEY_DATA": str(data)})
    with process.stdout:
        printed = process.stdout.read()
    if code := process.wait(START_SECONDS):
        raise RuntimeError(f"{command[0]} ended with {code}:\n{printed}")
    return printed.splitlines()[-1] if printed else ""


def run_in(server: Server, script: str) -> None:
    """Run a script that writes rows to a server's database."""
    run_forked("manage.py", "shell", "-c", script, data=server.data)


class Server:
    """`manage.py serve` or another `command` in a subprocess. `link` is the sign-in link of its last start."""

    def __init__(self, data: Path, command: Sequence[str] = ("manage.py", "serve"), **environment: str) -> None:
        self.data = data
        self._command = command
        self.port = 0
        self.link = ""
        self.output: list[str] = []
        self._environment = environment
        self._process: Process | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the server and wait for the link. A restart uses the same port. Raise RuntimeError."""
        environment = inherited()
        # Titles are generated only in tests of titles, because other tests count the requests to the model.
        environment |= {"PARLEY_DATA": str(self.data), "PORT": str(self.port), "TITLES": "words", **self._environment}
        self.link = ""
        self._process = self._run(environment)
        # A new event, because the thread that reads the output of a killed process may still have to set its own.
        ready = threading.Event()
        threading.Thread(target=self._read, args=[self._process, ready], daemon=True).start()
        if not ready.wait(START_SECONDS) or not self.link:
            self.stop()
            raise RuntimeError("Parley did not start:\n" + "".join(self.output))

    def _run(self, environment: dict[str, str]) -> Process:
        return subprocess.Popen(
            [sys.executable, *self._command],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def set(self, **environment: str) -> None:
        """Set environment variables for the next start."""
        self._environment |= environment

    def stop(self) -> None:
        """Stop the server like Ctrl+C, and wait for its end."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(20)

    def kill(self) -> None:
        """Kill the server without warning, as a power failure would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(20)

    def _read(self, process: Process, ready: threading.Event) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self.output.append(line)
                if found := re.search(r"(http://127\.0\.0\.1:(\d+)/accounts/link/\S+)", line):
                    self.link, self.port = found[1], int(found[2])
                    ready.set()
        ready.set()


class ForkedServer(Server):
    """A server that is forked from a process which has imported the libraries. It starts in half the time."""

    def _run(self, environment: dict[str, str]) -> Process:
        return Fork(self._command, ROOT, environment)
