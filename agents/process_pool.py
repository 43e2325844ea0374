"""Child processes that run untrusted work, with limits on CPU, time, memory and output.

A pool runs functions of one module. A function takes plain values and yields pieces of text or bytes. The child
returns only these pieces, and they are never unpickled. The work cannot evade the limits: a timer of the kernel ends
the child when its CPU seconds are used up, its address space is bounded, and the caller kills it when it takes too
long, returns too much, or its job is cancelled. The next job then gets a new process.

Other pools were considered. concurrent.futures, pebble and loky pass the server's environment with its keys to the
child, unpickle the results, and keep idle processes and manager threads. None of them bounds memory or output, and
only pebble can end a single job.
"""

from __future__ import annotations

import asyncio
import atexit
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from agents.process_child import DONE, HEAD, OUT_OF_MEMORY, PIECE, READ_SIZE, STARTED
from agents.threads import in_thread

Reason = Literal["busy", "cancelled", "cpu", "failed", "memory", "output", "time"]
Value = bytes | str | int | float | bool | None | list[str] | list[int]

ROOT = Path(__file__).resolve().parents[1]
CHILD = "agents.process_child"
# The time for the start includes the import of the module, which may be slow on a busy machine.
START_SECONDS = 30.0
# A process is replaced after this many jobs, so that leaked memory cannot accumulate.
JOBS_PER_PROCESS = 200
CPU_SIGNALS = (-signal.SIGPROF, -signal.SIGXCPU)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one job.

    `seconds` is the time for which the caller waits for the child. `queue_seconds` limits the wait for a free process.
    """

    cpu_seconds: float
    seconds: float
    memory_mb: int
    output_bytes: int
    queue_seconds: float = 10.0


class WorkFailed(Exception):  # not named an error, because reaching a limit is expected with hostile input
    """A job did not complete. `reason` is for programs, and the text is for a log."""

    def __init__(self, reason: Reason, details: str = "") -> None:
        super().__init__(f"{reason}: {details}" if details else reason)
        self.reason = reason


class Job:
    """One run of a function. `cancel` ends it from any thread, even before it has started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self.cancelled = False

    def cancel(self) -> None:
        with self._lock:
            self.cancelled = True
            if self._process is not None:
                self._process.kill()

    def attach(self, process: _Process | None) -> None:
        """Make `cancel` kill this process. Raise WorkFailed if the job is already cancelled."""
        with self._lock:
            self._process = process
            if self.cancelled and process is not None:
                raise WorkFailed("cancelled")


class ProcessPool:
    """Up to `size` processes that run functions of a module. They are started on demand. Thread-safe.

    With `keep_seconds`, a process waits that long for another job. This saves the time of a start, but jobs then share
    a process. Without it, each job has its own process.
    """

    def __init__(self, module: str, limits: Limits, *, size: int, keep_seconds: float = 0.0) -> None:
        self._module = module
        self._limits = limits
        self._keep_seconds = keep_seconds
        self._places = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._timer: threading.Timer | None = None
        atexit.register(self.close)

    def run(self, function: str, *args: Value) -> list[bytes]:
        """Run a function and return its pieces. Blocks; raises WorkFailed."""
        return list(self.stream(function, *args))

    async def run_async(self, function: str, *args: Value) -> list[bytes]:
        """Run a function in a thread and return its pieces. Cancelling this kills the process. Raise WorkFailed."""
        job = Job()
        try:
            return await in_thread(lambda: list(self.stream(function, *args, job=job)))
        except asyncio.CancelledError:
            job.cancel()
            raise

    def stream(
        self, function: str, *args: Value, file: IO[bytes] | None = None, job: Job | None = None
    ) -> Iterator[bytes]:
        """Run a function and yield its pieces as they arrive. Closing the iterator kills the process.

        Raise WorkFailed. `file` must have a file descriptor. The function gets it before its other arguments. Pass it
        only to pools that keep no processes.
        """
        job = job or Job()
        if not self._places.acquire(timeout=self._limits.queue_seconds):
            raise WorkFailed("busy")
        try:
            if job.cancelled:
                raise WorkFailed("cancelled")
            yield from self._in_process(job, file, pickle.dumps((function, args, self._limits.cpu_seconds)))
        finally:
            self._places.release()

    def close(self) -> None:
        """End the processes that wait for jobs."""
        with self._lock:
            idle, self._idle = self._idle, []
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        for process in idle:
            process.end()

    def _in_process(self, job: Job, file: IO[bytes] | None, request: bytes) -> Iterator[bytes]:
        process = self._take() or self._start(file)
        try:
            job.attach(process)
            if not process.begin(request):  # the idle process has ended in the meantime
                process.end()
                process = self._start(file)
                job.attach(process)
                if not process.begin(request):
                    raise WorkFailed("failed", f"could not start a process for {self._module}")
            yield from process.pieces(self._limits)
        except WorkFailed:
            if job.cancelled:
                raise WorkFailed("cancelled") from None
            raise
        finally:
            job.attach(None)
            self._give_back(process)

    def _take(self) -> _Process | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _start(self, file: IO[bytes] | None) -> _Process:
        try:
            return _Process(self._module, self._limits.memory_mb, file)
        except OSError as error:  # the system is out of processes, memory or descriptors
            raise WorkFailed("failed", str(error)) from error

    def _give_back(self, process: _Process) -> None:
        if not process.is_free or not self._keep_seconds or process.jobs >= JOBS_PER_PROCESS:
            process.end()
            return
        process.idle_since = time.monotonic()
        with self._lock:
            self._idle.append(process)
            self._start_timer()

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(self._keep_seconds, self._end_idle)
            self._timer.daemon = True
            self._timer.start()

    def _end_idle(self) -> None:
        oldest = time.monotonic() - self._keep_seconds
        with self._lock:
            idle = [process for process in self._idle if process.idle_since <= oldest]
            self._idle = [process for process in self._idle if process.idle_since > oldest]
            self._timer = None
            if self._idle:
                self._start_timer()
        for process in idle:
            process.end()


class _Process:
    """A child process, on the server's side. `is_free`: it has finished its job and can take another one."""

    def __init__(self, module: str, memory_mb: int, file: IO[bytes] | None) -> None:
        self.jobs = 0
        self.idle_since = 0.0
        self.is_free = False
        ours, theirs = socket.socketpair()
        descriptors = [file.fileno()] if file else []
        command = [sys.executable, "-m", CHILD, module, str(memory_mb), *map(str, descriptors)]
        try:
            # The child gets no environment, because that contains keys and the child parses foreign input. It gets a
            # new session, so that Ctrl+C reaches only the server.
            self._popen = subprocess.Popen(  # noqa: S603  # our own module, by our own interpreter
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=ROOT,
                env={"PYTHONUTF8": "1"},
                pass_fds=tuple(descriptors),
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self._socket = ours

    def begin(self, request: bytes) -> bool:
        """Send a job and wait until the child has started it. Return False if the child has ended."""
        self.is_free = False
        self.jobs += 1
        self._socket.settimeout(START_SECONDS)
        try:
            self._socket.sendall(HEAD.pack(PIECE, len(request)))
            self._socket.sendall(request)
            return self._read(HEAD.size) == HEAD.pack(STARTED, 0)
        except OSError:
            return False

    def pieces(self, limits: Limits) -> Iterator[bytes]:
        """Yield the pieces that the function yields. Raise WorkFailed."""
        room, deadline = limits.output_bytes, time.monotonic() + limits.seconds
        while True:
            kind, size = HEAD.unpack(self._receive(HEAD.size, deadline))
            if size > room:
                raise WorkFailed("output", f"more than {limits.output_bytes:,} bytes")
            body = self._receive(size, deadline)
            if kind == PIECE:
                room -= size
                before = time.monotonic()
                yield body
                deadline += time.monotonic() - before
            elif kind == DONE:
                self.is_free = True
                return
            else:
                raise WorkFailed("memory" if kind == OUT_OF_MEMORY else "failed", body.decode(errors="replace"))

    def kill(self) -> None:
        """Kill the child. A pending read of its output then ends."""
        self._popen.kill()

    def end(self) -> None:
        """Kill the child and free its resources."""
        self._popen.kill()
        self._popen.wait()
        self._socket.close()

    def _receive(self, size: int, deadline: float) -> bytes:
        try:
            return self._read(size, deadline)
        except TimeoutError:
            raise WorkFailed("time") from None
        except OSError:
            code = self._popen.wait()
            raise WorkFailed("cpu" if code in CPU_SIGNALS else "failed", f"ended with {code}") from None

    def _read(self, size: int, deadline: float | None = None) -> bytes:
        """Read exactly `size` bytes. Raise TimeoutError, or ConnectionError if the child has ended."""
        data = bytearray()
        while len(data) < size:
            if deadline is not None:
                self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            received = self._socket.recv(min(READ_SIZE, size - len(data)))
            if not received:
                raise ConnectionResetError
            data += received
        return bytes(data)
