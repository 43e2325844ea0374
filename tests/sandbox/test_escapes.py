"""Attempts to leave the sandbox, to outlive it, and to use more than its share."""

from __future__ import annotations

import asyncio
import os
import re
import select
import signal
import socket
import subprocess
import sys
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from agents.sandbox import process
from agents.sandbox.command import ENVIRONMENT, Limits, Sandbox
from agents.sandbox.process import Ended, run
from agents.sandbox.usage import memory_of
from tests.support.sandboxes import LifeLine, bash, finish, python

CAP_SYS_RESOURCE = 24
ROOT = Path(__file__).resolve().parents[2]
CONNECT = """
import socket, sys
kind, address = sys.argv[1:]
target = ("127.0.0.1", int(address)) if kind == "tcp" else "\\0" + address if kind == "abstract" else address
try:
    socket.socket(socket.AF_INET if kind == "tcp" else socket.AF_UNIX).connect(target)
    print("connected")
except OSError as error:
    print(type(error).__name__)
"""


def limited(sandbox: Sandbox, **limits: int) -> Sandbox:
    return replace(sandbox, limits=Limits(**limits))


def may_pass_limits() -> bool:
    """Return whether this process has the capability CAP_SYS_RESOURCE."""
    [capabilities] = re.findall(r"CapEff:\s*(\w+)", Path("/proc/self/status").read_text())
    return bool(int(capabilities, 16) >> CAP_SYS_RESOURCE & 1)


# Files


async def test_passwords_and_parleys_files_are_invisible(sandbox: Sandbox) -> None:
    secret = sandbox.workspace.parent.parent / "parley.sqlite3"
    secret.write_text("a secret")
    for path in (secret, ROOT / "manage.py", "/etc/shadow", Path.home()):
        ended, output = await finish(sandbox, "ls", str(path))
        assert ended == Ended("exit", 2), path
        assert "No such file or directory" in output


async def test_the_system_cannot_be_changed(sandbox: Sandbox) -> None:
    places = "/x /usr/x /bin/x /etc/x /etc/passwd /etc/hosts /dev/x /proc/sys/kernel/core_pattern /proc/sysrq-trigger"
    _, output = await bash(sandbox, f"for x in {places}; do (echo > $x) 2>/dev/null && echo $x; done; echo end")
    assert output == "end\n"
    assert "Read-only file system" in (await bash(sandbox, "chmod u+w /etc/passwd || rm /etc/passwd")).output


async def test_only_the_workspace_keeps_what_is_written(sandbox: Sandbox) -> None:
    await bash(sandbox, "echo kept > here; echo lost > /tmp/there; echo lost > /dev/shm/there")
    _, output = await bash(sandbox, "cat here; ls /tmp /dev/shm")
    assert output == "kept\n/dev/shm:\n\n/tmp:\n"


async def test_a_link_leads_nowhere(sandbox: Sandbox) -> None:
    secret = sandbox.workspace.parent / "secret"
    secret.write_text("a secret")
    (sandbox.workspace / "link").symlink_to(secret)
    ended, output = await bash(sandbox, "cat link ../secret /workspace/../secret; echo overwritten > link")
    assert ended == Ended("exit", 1)
    assert "a secret" not in output
    assert secret.read_text() == "a secret"


async def test_folders_of_the_host_can_be_hidden(sandbox: Sandbox) -> None:
    """Parley's own folders can be hidden even if they are below /usr, which commands read."""
    assert (await bash(sandbox, "ls /usr/share")).output != ""
    assert (await bash(replace(sandbox, hidden=(Path("/usr/share"),)), "ls /usr/share")).output == ""


async def test_nothing_is_inherited(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command inherits no variable with a key, no open file or socket, and no capability, and cannot get one."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    _, output = await bash(sandbox, "cat /proc/*/environ | tr '\\0' '\\n'; env")
    names = {line.partition("=")[0] for line in output.splitlines()}
    assert names <= {*ENVIRONMENT, "PWD", "OLDPWD", "SHLVL", "_"}
    assert (await python(sandbox, "import os; print(os.listdir('/proc/self/fd'))")).output == "['0', '1', '2', '3']\n"
    _, output = await bash(sandbox, "grep -E 'Cap(Eff|Prm|Bnd)|NoNewPrivs' /proc/self/status; id -u; unshare -U true")
    assert [line.split()[-1] for line in output.splitlines()[:5]] == ["0" * 16, "0" * 16, "0" * 16, "1", "1000"]
    assert "unshare failed" in output


# Other processes


async def test_processes_of_the_host_are_invisible(sandbox: Sandbox) -> None:
    _, output = await bash(sandbox, "cat /proc/[0-9]*/comm | sort -u; kill -9 -1 2>/dev/null; echo end")
    assert set(output.split()) <= {"bwrap", "bash", "cat", "sort", "end"}


async def test_there_is_no_terminal(sandbox: Sandbox) -> None:
    """Without one, a command cannot type into the terminal in which Parley was started."""
    ended, _ = await bash(sandbox, "exec < /dev/tty")
    assert ended == Ended("exit", 1)


async def test_the_network_is_off_unless_granted(sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        assert (await python(sandbox, CONNECT, ("tcp", port))).output == "ConnectionRefusedError\n"
        assert (await python(replace(sandbox, network=True), CONNECT, ("tcp", port))).output == "connected\n"


@pytest.mark.parametrize("network", [False, True])
async def test_the_sandbox_has_names_for_itself(sandbox: Sandbox, network: bool) -> None:
    """Test suites and development servers listen on localhost, and many programs look up their own host."""
    code = """
import asyncio, socket
async def listen():
    await asyncio.start_server(print, "localhost")
asyncio.run(listen())
print(socket.gethostbyname("localhost"), socket.gethostbyname(socket.gethostname()))
"""
    assert (await python(replace(sandbox, network=network), code)).output == "127.0.0.1 127.0.0.1\n"


async def test_names_of_the_host_come_with_its_network(sandbox: Sandbox) -> None:
    names = await asyncio.to_thread(Path("/etc/hosts").read_text)
    assert names not in (await bash(sandbox, "cat /etc/hosts")).output
    assert names in (await bash(replace(sandbox, network=True), "cat /etc/hosts")).output


async def test_sockets_of_the_host_are_out_of_reach(sandbox: Sandbox) -> None:
    path = str(sandbox.workspace.parent / "socket")
    with socket.socket(socket.AF_UNIX) as named, socket.socket(socket.AF_UNIX) as abstract:
        named.bind(path)
        named.listen()
        abstract.bind("\0parley-test")
        abstract.listen()
        assert (await python(sandbox, CONNECT, ("unix", path))).output == "FileNotFoundError\n"
        assert (await python(sandbox, CONNECT, ("abstract", "parley-test"))).output == "ConnectionRefusedError\n"


# Limits


async def test_commands_end_first_when_memory_runs_short(sandbox: Sandbox) -> None:
    _, output = await bash(sandbox, "cat /proc/self/oom_score_adj; echo 0 > /proc/self/oom_score_adj")
    assert output.startswith("1000\n")
    assert ("Permission denied" in output) == may_pass_limits()


async def test_a_fork_bomb_is_bounded(sandbox: Sandbox) -> None:
    code = """
import os, signal
count = 0
try:
    while True:
        if os.fork() == 0:
            signal.pause()
        count += 1
except BlockingIOError:
    print(count)
"""
    ended, output = await python(limited(sandbox, processes=20), code)
    assert ended == Ended("exit", 0)
    assert 10 <= int(output) < 20


async def test_a_fork_bomb_ends_with_its_time(sandbox: Sandbox, life_line: LifeLine) -> None:
    bomb = "exec 3>life-line; :(){ :|:& };: 2>/dev/null; wait"
    ended, _ = await bash(limited(sandbox, processes=20), bomb, seconds=0.2)
    assert ended.reason in ("time", "exit")  # on a fast machine, bash ends by itself
    assert life_line.is_cut()


async def test_memory_of_a_process_is_bounded(sandbox: Sandbox) -> None:
    ended, output = await python(limited(sandbox, memory_mb=64), "bytearray(200 << 20)")
    assert ended == Ended("exit", 1)
    assert "MemoryError" in output


@pytest.mark.parametrize("kind", ["shared", "several"])
async def test_memory_of_all_processes_is_bounded(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Parley bounds the sum of all processes and shared memory, which the kernel does not limit."""
    monkeypatch.setattr(process, "WATCH_SECONDS", 0.02)
    code = {
        "shared": "block = mmap.mmap(-1, 100 << 20); [block.write(b'x' * (1 << 20)) for _ in range(100)]",
        "several": "[os.fork() for _ in range(2)]; block = b'x' * (30 << 20)",
    }[kind]
    ended, _ = await python(limited(sandbox, memory_mb=80), f"import mmap, os, signal; {code}; signal.pause()")
    assert ended == Ended("memory")


async def test_time_is_bounded(sandbox: Sandbox, life_line: LifeLine) -> None:
    ended, output = await bash(sandbox, "exec 3>life-line; trap '' TERM INT HUP; echo begun; sleep 1000", seconds=0.3)
    assert (ended, output) == (Ended("time"), "begun\n")
    assert life_line.is_cut()


async def test_the_processor_is_bounded(sandbox: Sandbox) -> None:
    ended, _ = await bash(limited(sandbox, cpu_seconds=0), "while :; do :; done")
    assert ended == Ended("exit", 128 + signal.SIGKILL)


async def test_huge_output_is_bounded(sandbox: Sandbox) -> None:
    ended, output = await bash(limited(sandbox, output_bytes=100_000), "head -c 100000 /dev/zero")
    assert (ended, len(output)) == (Ended("exit", 0), 100_000)
    ended, output = await bash(limited(sandbox, output_bytes=100_000), "yes")
    assert (ended, len(output)) == (Ended("output"), 100_000)


async def test_files_are_bounded(sandbox: Sandbox) -> None:
    _, output = await bash(limited(sandbox, file_mb=1), "head -c 2M /dev/zero > large; stat -c %s large")
    assert output.splitlines()[-1] == str(1024 * 1024)
    _, output = await bash(limited(sandbox, temporary_mb=1), "head -c 2M /dev/zero > /tmp/large")
    assert "No space left on device" in output


@pytest.mark.parametrize("flood", ["head -c 100K /dev/zero > $i", ": > $i"])
async def test_the_workspace_is_bounded(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, flood: str) -> None:
    """A command that fills the workspace ends. In a full workspace files can be deleted but not written."""
    monkeypatch.setattr(process, "WATCH_SECONDS", 0.02)
    small = limited(sandbox, workspace_mb=2, workspace_files=200)
    ended, _ = await bash(small, f"while :; do i=$((i+1)); {flood}; done")
    assert ended == Ended("folder")
    ended, output = await bash(small, "echo more > more; rm [0-9]*; ls")
    assert output == "bash: line 1: echo: write error: File too large\nmore\n"
    assert (await bash(small, "echo more > more; cat more")).output == "more\n"


# Ends


async def test_a_daemon_ends_with_its_command(sandbox: Sandbox, life_line: LifeLine) -> None:
    daemon = "exec 3>life-line; (setsid bash -c 'trap \"\" HUP TERM; sleep 1000 & wait' >/dev/null 2>&1 &); echo begun"
    assert await bash(sandbox, daemon) == (Ended("exit", 0), "begun\n")
    assert life_line.is_cut()


async def test_a_daemon_that_holds_the_output_ends_too(sandbox: Sandbox, life_line: LifeLine) -> None:
    assert await bash(sandbox, "exec 3>life-line; setsid sleep 1000 & echo begun") == (Ended("exit", 0), "begun\n")
    assert life_line.is_cut()


async def test_stop_ends_all_processes(sandbox: Sandbox, life_line: LifeLine) -> None:
    begun = asyncio.Event()

    async def consume() -> None:
        command = ("bash", "-c", "exec 3>life-line; setsid sleep 1000 & echo begun; sleep 1000")
        async with aclosing(run(command, sandbox, seconds=60)) as events:
            async for _ in events:
                begun.set()

    task = asyncio.create_task(consume())
    await begun.wait()
    assert not life_line.is_cut()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert life_line.is_cut()


async def test_closing_ends_all_processes(sandbox: Sandbox, life_line: LifeLine) -> None:
    command = ("bash", "-c", "exec 3>life-line; yes")
    async with aclosing(run(command, sandbox, seconds=60)) as events:
        assert await anext(events)
    assert life_line.is_cut()


PARENT = """
import asyncio, sys
from pathlib import Path
from agents.sandbox.command import Sandbox
from agents.sandbox.process import run

async def main():
    command = ("bash", "-c", "exec 3>life-line; setsid sleep 1000 >/dev/null 2>&1 & echo begun; sleep 1000")
    async for chunk in run(command, Sandbox(Path(sys.argv[1])), seconds=60):
        print("begun", flush=True)

asyncio.run(main())
"""


def test_a_command_dies_with_parley(sandbox: Sandbox, life_line: LifeLine) -> None:
    """A killed server leaves no command that could write to the workspace of the next turn."""
    command = [sys.executable, "-c", PARENT, str(sandbox.workspace)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "begun\n"
        assert not life_line.is_cut()
        parent.kill()
    assert select.select([life_line.descriptor], [], [], 20)[0]  # readable when no process has it open for writing
    assert life_line.is_cut()


async def test_commands_leave_nothing_open(sandbox: Sandbox) -> None:
    """Commands leave neither open files nor processes in the server."""

    def mine() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(psutil.Process().children(recursive=True))

    await bash(sandbox, "true")  # opens what asyncio opens once
    before = mine()
    await bash(sandbox, "true")
    await bash(sandbox, "sleep 1000", seconds=0.1)
    async with aclosing(run(("yes",), sandbox, seconds=60)) as events:
        await anext(events)
    assert mine() == before


async def test_a_command_may_close_its_output(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "END_SECONDS", 0.05)
    assert await bash(sandbox, "exec >&- 2>&-; sleep 0.2; exit 3") == (Ended("exit", 3), "")


async def test_a_command_that_cannot_start_is_distinguished_from_one_that_fails(sandbox: Sandbox) -> None:
    assert (await finish(sandbox, "false")).ended == Ended("exit", 1)
    hidden = replace(sandbox, hidden=(Path("/usr/bin"),))
    assert (await finish(hidden, "true")).ended.reason == "failed"


def test_memory_of_a_process_that_has_ended_is_none() -> None:
    assert memory_of(2**22 + 1) == 0
