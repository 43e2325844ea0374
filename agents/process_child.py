"""The program of a child process (`agents.process_pool`). It runs jobs until the server closes the channel.

Arguments: the module with the functions, the memory limit in megabytes, and descriptors of files for the functions.
"""

from __future__ import annotations

import importlib
import logging
import os
import pickle
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType
from typing import IO

# The head of a message between the processes: its kind, and the number of bytes that follow.
HEAD = struct.Struct("!cI")
STARTED, PIECE, DONE, OUT_OF_MEMORY, FAILED = b"S", b"P", b"D", b"M", b"F"
READ_SIZE = 1 << 18
# A job must not slow down the server on a machine with few cores.
NICENESS = 5
MAX_EXPLANATION_LENGTH = 1_000


def main(module: str, memory_mb: str, *files: str) -> None:
    """Run the jobs that arrive on the channel, which is the standard input."""
    logging.disable()
    channel = socket.socket(fileno=0)
    functions = importlib.import_module(module)
    _limit(int(memory_mb))
    given = [os.fdopen(int(file), "rb") for file in files]
    while (request := _receive(channel)) is not None:
        _send(channel, STARTED)
        if not _run(channel, functions, given, request):
            return


def _run(channel: socket.socket, functions: ModuleType, given: Sequence[IO[bytes]], request: bytes) -> bool:
    """Run one job. Return False if the process must not run another one."""
    name, args, cpu_seconds = pickle.loads(request)  # noqa: S301  # from the server
    # When the timer ends, the default action of its signal kills the process, whatever code is running.
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        for piece in getattr(functions, name)(*given, *args):
            _send(channel, PIECE, piece.encode(errors="surrogatepass") if isinstance(piece, str) else piece)
    except MemoryError:
        _send(channel, OUT_OF_MEMORY)
        return False
    except Exception as error:
        _send(channel, FAILED, repr(error)[:MAX_EXPLANATION_LENGTH].encode(errors="replace"))
        return False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    _send(channel, DONE)
    return True


def _limit(memory_mb: int) -> None:
    """Limit the process's memory and files, and lower its priority. Skip limits that the system does not have."""
    with suppress(OSError):
        os.nice(NICENESS)
    with suppress(ImportError):
        import resource

        # macOS does not enforce the limit of the address space. There, only the CPU seconds and the caller's limits
        # apply.
        for limit, most in (
            (resource.RLIMIT_AS, memory_mb * 1024 * 1024),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_CORE, 0),
        ):
            with suppress(OSError, ValueError):
                resource.setrlimit(limit, (most, most))


def _receive(channel: socket.socket) -> bytes | None:
    """Return the next job as bytes, or None when the server has closed the channel."""
    with suppress(OSError):
        head = _read(channel, HEAD.size)
        if len(head) == HEAD.size:
            size = HEAD.unpack(head)[1]
            body = _read(channel, size)
            return body if len(body) == size else None
    return None


def _read(channel: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size and (received := channel.recv(min(READ_SIZE, size - len(data)))):
        data += received
    return bytes(data)


def _send(channel: socket.socket, kind: bytes, body: bytes = b"") -> None:
    channel.sendall(HEAD.pack(kind, len(body)))
    if body:
        channel.sendall(body)


if __name__ == "__main__":
    main(*sys.argv[1:])
