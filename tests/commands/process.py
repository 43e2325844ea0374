"""A real Parley process as an operator starts it, with a minimal environment, its own data folder and a free port."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, STDOUT, CompletedProcess, Popen, run
from tempfile import TemporaryDirectory
from threading import Timer

from tests.support.forked import Fork

ROOT = Path(__file__).resolve().parent.parent.parent
# The seconds after which a hanging test fails; no test measures them.
PATIENCE = 180


def environment(data: Path, **settings: str) -> dict[str, str]:
    """Return an environment with only PATH from the tester's own."""
    return {"PATH": os.environ["PATH"], "PARLEY_DATA": str(data), "PORT": "0", **settings}


def manage(*words: str, data: Path, **settings: str) -> CompletedProcess[str]:
    """Run a command and wait for its end."""
    return run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=environment(data, **settings),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def manage_forked(*words: str, data: Path, **settings: str) -> CompletedProcess[str]:
    """Run a command like `manage`, but without starting an interpreter, which takes most of the time."""
    with TemporaryDirectory() as folder:
        errors = Path(folder) / "errors"
        process = Fork(["manage.py", *words], ROOT, environment(data, **settings), errors)
        too_late = Timer(PATIENCE, process.kill)
        too_late.start()
        with process.stdout:
            printed = process.stdout.read()
        code = process.wait(PATIENCE)
        too_late.cancel()
        return CompletedProcess(words, code, printed, errors.read_text())


@dataclass
class Started:
    """A server that has reported that it is ready."""

    process: Popen[str]
    line: str

    @property
    def address(self) -> str:
        found = re.search(r"http://[^/\s]+", self.line)
        assert found, self.line
        return found.group()

    @property
    def link(self) -> str:
        return self.line.split()[-1]

    def end(self, how: signal.Signals) -> tuple[int, str]:
        """Send a signal; return the exit code and the output since it was ready, without the security log."""
        self.process.send_signal(how)
        rest, _nothing = self.process.communicate(timeout=PATIENCE)
        lines = [line for line in rest.splitlines(keepends=True) if not line.startswith('{"at": ')]
        return self.process.returncode, "".join(lines)


def in_the_background(*command: str) -> tuple[str, ...]:
    """Return a Python command as a shell starts the background jobs of a script: with SIGINT ignored."""
    ignore = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN)"
    code = f"{ignore}; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    return ("-c", code, *command)


@contextmanager
def running(command: Sequence[str], environ: Mapping[str, str], pass_fds: tuple[int, ...] = ()) -> Iterator[Popen[str]]:
    """Run a Python command, and kill its remaining processes afterwards."""
    process = Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env=environ,
        pass_fds=pass_fds,
        stdout=PIPE,
        stderr=STDOUT,
        text=True,
    )
    hanging = Timer(PATIENCE, process.kill)
    hanging.start()
    try:
        yield process
    finally:
        hanging.cancel()
        process.kill()
        process.communicate()


@contextmanager
def serving(data: Path, *command: str, ready: str = "ready", **settings: str) -> Iterator[Started]:
    """Run a server, by default `manage.py serve`, and continue when it prints the line with `ready`."""
    with running(command or ("manage.py", "serve"), environment(data, **settings)) as process:
        assert process.stdout is not None
        before: list[str] = []
        for line in process.stdout:
            before.append(line)
            if ready in line:
                break
        else:
            raise AssertionError("".join(before))
        yield Started(process, line.strip())


def workers(data: Path) -> int:
    """Return the number of runners in the database."""
    with closing(sqlite3.connect(data / "parley.sqlite3")) as database:
        (count,) = database.execute("SELECT count(*) FROM chat_worker").fetchone()
        return int(count)
