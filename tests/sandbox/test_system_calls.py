"""The filter of system calls in a real sandbox."""

from __future__ import annotations

import ctypes

import pytest

from agents.sandbox import system_calls
from agents.sandbox.command import Sandbox
from agents.sandbox.process import Ended
from tests.support.sandboxes import bash, finish

# Makes calls with zeros as arguments and prints each error, or "0" if the call was allowed.
CALL = """
import ctypes, sys
library = ctypes.CDLL(None, use_errno=True)
for number in map(int, sys.argv[1:]):
    failed = library.syscall(number, 0, 0, 0, 0, 0) == -1
    print(ctypes.get_errno() if failed else 0)
"""
NAMES = ("unshare", "add_key", "keyctl", "io_uring_setup", "bpf", "userfaultfd", "mount")
EPERM = 1


def numbers() -> list[str]:
    resolve = ctypes.CDLL(system_calls.LIBRARY).seccomp_syscall_resolve_name
    return [str(resolve(name.encode())) for name in NAMES]


async def errors(sandbox: Sandbox) -> list[int]:
    _, output = await finish(sandbox, "python3", "-c", CALL, *numbers())
    return [int(line) for line in output.split()]


@pytest.fixture(autouse=True)
def _needs_the_library() -> None:
    if not system_calls.program():
        pytest.skip("this machine has no libseccomp")


async def test_denied_calls_fail(sandbox: Sandbox) -> None:
    """System calls that no command needs are refused before the kernel handles them."""
    assert await errors(sandbox) == [EPERM] * len(NAMES)


async def test_without_the_library_there_is_no_filter(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_calls, "program", lambda: b"")
    assert (await errors(sandbox))[0] == 0


async def test_usual_programs_work(sandbox: Sandbox) -> None:
    run = "import subprocess, threading; subprocess.run(['true'], check=True)"
    command = f'python3 -c "{run}" && echo text > a && tar -cf b.tar a && tar -tf b.tar'
    assert await bash(sandbox, command) == (Ended("exit", 0), "a\n")


def test_machine_without_the_library_has_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_calls, "LIBRARY", "libseccomp-is-not-here.so")
    assert system_calls.program.__wrapped__() == b""
