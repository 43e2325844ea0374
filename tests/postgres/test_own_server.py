"""scripts/on-postgres: it gives the command a server, returns its exit code, and leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, STDOUT

import psutil
import pytest

from tests.support.server import ROOT

pytestmark = [pytest.mark.postgres, pytest.mark.server]
SCRIPT = [sys.executable, str(ROOT / "scripts/on-postgres")]
# Print the server's folder, then run the given command.
COMMAND = """
import os, psycopg, signal, sys
with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
    print(*connection.execute("SHOW data_directory").fetchone(), flush=True)
"""


@contextmanager
def started(then: str) -> Iterator[tuple[subprocess.Popen[str], Path, int]]:
    """Start the script with a command that has connected; return its process, the server's folder and its process
    id."""
    command = [*SCRIPT, sys.executable, "-c", COMMAND + then]
    with subprocess.Popen(command, text=True, stdin=PIPE, stdout=PIPE, stderr=STDOUT) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        pid = int((folder / "postmaster.pid").read_text().splitlines()[0])
        assert psutil.Process(pid).username() != "root"
        yield process, folder.parent, pid


def assert_gone(folder: Path, pid: int) -> None:
    assert not folder.exists()
    assert not psutil.pid_exists(pid)


def test_exit_code_is_handed_on() -> None:
    with started("sys.stdin.readline(); sys.exit(7)") as (process, folder, pid):
        process.communicate("end\n", timeout=60)
        assert process.returncode == 7
    assert_gone(folder, pid)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_reaches_the_command_and_ends_both(how: signal.Signals) -> None:
    """The command may handle the signal itself before both end."""
    own_way = f"signal.signal({how}, lambda *_: sys.exit(9)); print('up', flush=True); signal.pause()"
    with started(own_way) as (process, folder, pid):
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(how)
        assert process.wait(60) == 9
    assert_gone(folder, pid)


def test_command_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    ended = subprocess.run([*SCRIPT, str(tmp_path / "nothing")], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"scripts/on-postgres cannot run {tmp_path}/nothing: No such file or directory\n"
