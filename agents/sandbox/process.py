"""Run a command in a sandbox, and report its output and how it ended. None of its processes survives the run."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import signal
import stat
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from glob import glob
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from agents.sandbox import system_calls
from agents.sandbox.command import (
    CONFIGURATION,
    ENVIRONMENT,
    GROUPS,
    HOST_NAME,
    HOSTS,
    HOSTS_FILE,
    MB,
    NETWORK_CONFIGURATION,
    SYSTEM_FOLDERS,
    USERS,
    Descriptors,
    Sandbox,
    System,
    sandboxed,
)
from agents.sandbox.folder import make_folder
from agents.sandbox.usage import FolderUsage, folder_usage, memory_of
from agents.threads import in_thread

logger = logging.getLogger(__name__)

# The reasons for which commands cannot write files: the workspace is over its limits or cannot be measured, or the disk
# is nearly full.
Full = Literal["folder", "unmeasured", "disk"]
Reason = Literal["exit", "time", "output", "memory", Full, "failed"]

READ_SIZE = 1 << 16
NO_VALUES: Mapping[str, str] = MappingProxyType({})
WATCH_SECONDS = 0.25
# Memory is measured in every round, and the folder in one of this many rounds.
ROUNDS_PER_FOLDER = 4
# The seconds that the kernel may take to end all processes of a command.
END_SECONDS = 10.0
# Commands are ended before the disk is full, even if it is not they that fill it.
MIN_FREE_MB = 200
MIN_FREE_FILES = 20_000


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a command: with an exit code, over a limit, or without having started (`failed`).

    `full` is set if the command could not write files, because the workspace was over its limits from the start.
    """

    reason: Reason
    code: int | None = None
    full: Full | None = None


def _ignore() -> None:
    """Do nothing when files have changed."""


async def run(
    command: Sequence[str],
    sandbox: Sandbox,
    *,
    seconds: float,
    stdin: bytes = b"",
    on_files: Callable[[], None] = _ignore,
) -> AsyncGenerator[bytes | Ended, None]:
    """Run a command. Yield its output with its error output as it arrives, and Ended as the last value.

    `on_files` is called, at most once a second, when session files have changed while the command runs.

    The workspace is made if it does not exist. All processes are killed when the command ends, takes too long or is
    over a limit, and when the consumer closes the generator or is cancelled. Raise OSError if the workspace cannot be
    made. Use it within `contextlib.aclosing`.
    """
    sandbox, full = await in_thread(_prepare, sandbox)
    started = await _start(command, sandbox, full, stdin=stdin)
    timer = asyncio.get_running_loop().call_later(seconds, started.kill, "time")
    watcher = asyncio.create_task(started.watch(on_files), name="watch a sandbox")
    room = sandbox.limits.output_bytes
    try:
        while chunk := await started.output.read(READ_SIZE):
            if room > 0:
                yield chunk[:room]
            room -= len(chunk)
            if room < 0:
                started.kill("output")
        await started.exited()  # the command may have closed its output before its end
        await started.wait()
        yield started.ended()
    finally:
        timer.cancel()
        watcher.cancel()
        started.kill("failed")
        await started.wait()
        started.close()


@asynccontextmanager
async def serve(command: Sequence[str], sandbox: Sandbox, values: Mapping[str, str]) -> AsyncIterator[Process]:
    """Run a program that communicates through pipes, until the context ends. `values` are added to its environment.

    It has the limits of a command except those of time and output. Raise OSError if it cannot be started.
    """
    sandbox, full = await in_thread(_prepare, sandbox)
    started = await _start(command, sandbox, full, stdin=None, values=values)
    watcher = asyncio.create_task(started.watch(), name="watch a sandbox")
    try:
        yield started.process
    finally:
        watcher.cancel()
        started.kill("failed")
        await started.wait()
        started.close()


async def _start(
    command: Sequence[str],
    sandbox: Sandbox,
    full: Full | None,
    *,
    stdin: bytes | None,
    values: Mapping[str, str] = NO_VALUES,
) -> _Command:
    """Start a command. If `stdin` is None, its input is a pipe, and its error output is separate."""
    with ExitStack() as inherited:
        reports, status = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        inherited.callback(os.close, status)
        with ExitStack() as on_error:
            on_error.callback(os.close, reports)
            texts = (USERS, GROUPS, _hosts(sandbox.network))
            users, groups, hosts = (_text_file(inherited, text) for text in texts)
            calls = _text_file(inherited, filtered) if (filtered := system_calls.program()) else None
            files = Descriptors(users, groups, hosts, status, calls)
            # The process gets a new session, so that Ctrl+C reaches only the server.
            process = await asyncio.create_subprocess_exec(
                *sandboxed(command, sandbox, system(), files),
                stdin=_input(inherited, stdin),
                stdout=PIPE,
                stderr=PIPE if stdin is None else STDOUT,
                cwd="/",
                env={**ENVIRONMENT, **values},
                pass_fds=[users, groups, hosts, status, *([] if calls is None else [calls])],
                start_new_session=True,
                umask=0o022,  # the usual value; the workspace itself is private
            )
            on_error.pop_all()
    return _Command(process, reports, sandbox, full)


class _Command:
    """A running command. `kill` ends all of its processes. Use it on the event loop."""

    def __init__(self, process: Process, reports: int, sandbox: Sandbox, full: Full | None) -> None:
        self.output: asyncio.StreamReader = process.stdout or asyncio.StreamReader()
        self.process = process
        self._sandbox = sandbox
        self._full = full
        self._loop = asyncio.get_running_loop()
        self._killed: Reason | None = None
        self._usage: FolderUsage | None = None
        # The pipe with bubblewrap's reports, and the reports so far.
        self._reports = reports
        self._reported = b""
        # The first process of the sandbox. If it is killed, the kernel kills all others, and reports its end last.
        self._first_pid = 0
        self._first: int | None = None
        self._loop.add_reader(reports, self._read_reports)

    def kill(self, reason: Reason) -> None:
        """Kill the command with all of its processes. Store the first reason, unless the command has ended."""
        self._read_reports()
        if self.process.returncode is None:
            self._killed = self._killed or reason
            with suppress(ProcessLookupError):
                self.process.kill()
        if self._first is not None:
            # It normally ends with bubblewrap, unless the command has changed it by ptrace.
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)

    async def exited(self) -> None:
        await self.process.wait()

    async def wait(self) -> None:
        """Wait until all processes of a command that has ended or was killed are gone, END_SECONDS at most."""
        try:
            async with asyncio.timeout(END_SECONDS):
                for output in filter(None, (self.output, self.process.stderr)):
                    while await output.read(READ_SIZE):
                        pass
                await self.process.wait()
                self._read_reports()
                if self._first is not None:
                    await _readable(self._first)
        except TimeoutError:
            logger.warning("A command in a sandbox did not end after it was killed")

    def ended(self) -> Ended:
        """Return how the command ended."""
        code = _report(self._reported, "exit-code")
        return Ended(self._killed or "failed") if code is None else Ended("exit", code, self._full)

    def close(self) -> None:
        self._loop.remove_reader(self._reports)
        os.close(self._reports)
        if self._first is not None:
            os.close(self._first)

    async def watch(self, on_files: Callable[[], None] = _ignore) -> None:
        """Measure memory and files, which the kernel does not limit, until cancelled. Kill the command over a limit."""
        rounds = 0
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            rounds += 1
            before = self._usage
            try:
                reason = await in_thread(self._excess, rounds % ROUNDS_PER_FOLDER == 0)
            except Exception:
                logger.exception("Could not measure the resources of a sandbox; stopping its command")
                reason = "failed"
            if reason is not None:
                self.kill(reason)
            if self._usage != before:
                on_files()

    def _excess(self, with_folder: bool) -> Reason | None:
        if self._first_pid and memory_of(self._first_pid) > self._sandbox.limits.memory_mb * MB:
            return "memory"
        if not with_folder:
            return None
        if is_disk_full(self._sandbox.workspace):
            return "disk"
        self._usage = _usage(self._sandbox)
        # If the workspace was full at the start, the command cannot write files, but it may delete some.
        return _excess(self._usage, self._sandbox) if self._full is None else None

    def _read_reports(self) -> None:
        """Read bubblewrap's reports: the pid of the sandbox's first process, and at the end the exit code."""
        with suppress(BlockingIOError):
            report = os.read(self._reports, READ_SIZE)
            self._reported += report
            if not report:  # bubblewrap has ended
                self._loop.remove_reader(self._reports)
        pid = _report(self._reported, "child-pid")
        if pid is not None and not self._first_pid:
            self._first_pid = pid
            with suppress(OSError):  # the process has ended
                self._first = os.pidfd_open(pid)


@cache
def system() -> System:
    """Return the parts of this machine that sandboxes show."""
    links = {path: os.readlink(path) for path in SYSTEM_FOLDERS if os.path.islink(path)}
    configuration = [path for pattern in CONFIGURATION for path in sorted(glob(pattern))]
    paths = [*SYSTEM_FOLDERS, *configuration, *NETWORK_CONFIGURATION]
    shown = tuple(path for path in paths if path not in links and Path(path).exists())
    return System(shown, tuple(links.items()), is_root=os.geteuid() == 0)


def _hosts(has_network: bool) -> bytes:
    """Return the names in /etc/hosts of a command: its own ones, and with a network those of this machine.

    The sandbox has no other source for localhost, and programs that look up their own host fail without it.
    """
    if not has_network:
        return HOSTS
    try:
        return Path(HOSTS_FILE).read_bytes() + f"\n127.0.0.1 {HOST_NAME}\n".encode()
    except OSError:
        return HOSTS


def _prepare(sandbox: Sandbox) -> tuple[Sandbox, Full | None]:
    """Make the workspace. Return the sandbox for the command, and why the workspace is full, or None. Raise OSError.

    In a full workspace, files can be deleted, but not written.
    """
    make_folder(sandbox.workspace)
    full = _excess(_usage(sandbox), sandbox)
    limits = replace(sandbox.limits, file_mb=0) if full else sandbox.limits
    copies_id = _copies_id(sandbox.workspace / sandbox.copies) if sandbox.copies else ""
    hidden = tuple(filter(Path.is_dir, sandbox.hidden))
    return replace(sandbox, limits=limits, hidden=hidden, copies_id=copies_id), full


def _copies_id(path: Path) -> str:
    """Return the device and inode of the folder of copies. Make it if it does not exist, because a command could.

    Raise OSError also if a command has put something else there.
    """
    if not os.path.lexists(path):
        make_folder(path)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    return f"{found.st_dev}:{found.st_ino}"


def has_room(sandbox: Sandbox, size: int) -> bool:
    """Return whether a file of `size` bytes can be added to the workspace, which must exist. Blocks. Raise OSError."""
    usage = _usage(sandbox)
    with_it = replace(usage, size=usage.size + size, entries=usage.entries + 1)
    is_small = size <= sandbox.limits.file_mb * MB
    return is_small and _excess(with_it, sandbox) is None and not is_disk_full(sandbox.workspace)


def is_disk_full(folder: Path) -> bool:
    """Return whether the folder's disk has less free space than commands must leave. Blocks. Raise OSError."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize < MIN_FREE_MB * MB or (disk.f_files > 0 and disk.f_favail < MIN_FREE_FILES)


def _usage(sandbox: Sandbox) -> FolderUsage:
    limits = sandbox.limits
    return folder_usage(sandbox.workspace, most_bytes=limits.workspace_mb * MB, most_entries=limits.workspace_files)


def _excess(usage: FolderUsage, sandbox: Sandbox) -> Full | None:
    """Return why a workspace of this size is full, or None."""
    if not usage.is_measured:
        return "unmeasured"
    limits = sandbox.limits
    return "folder" if usage.size > limits.workspace_mb * MB or usage.entries > limits.workspace_files else None


def _input(files: ExitStack, stdin: bytes | None) -> int:
    """Return the input of a command: the bytes, or a pipe for None.

    If there are no bytes, it is /dev/null instead of an empty file, because some programs read any file that they get
    as input. For example, ripgrep would search the input instead of the workspace.
    """
    if stdin is None:
        return PIPE
    return _text_file(files, stdin) if stdin else DEVNULL


def _text_file(files: ExitStack, text: bytes) -> int:
    """Return a descriptor from which a text can be read."""
    descriptor = os.memfd_create("parley")
    files.callback(os.close, descriptor)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(text)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _report(reports: bytes, name: str) -> int | None:
    for line in reports.splitlines():
        with suppress(ValueError):
            value = json.loads(line).get(name)
            if isinstance(value, int):
                return value
    return None


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
