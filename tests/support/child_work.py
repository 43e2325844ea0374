"""Functions that child processes run in tests of the process pool."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import IO


def echo(*values: object) -> Iterator[str]:
    yield from map(repr, values)


def who() -> Iterator[str]:
    yield str(os.getpid())


def terminal_session() -> Iterator[str]:
    yield str(os.getsid(0))


def work_on_request(file: IO[bytes]) -> Iterator[str]:
    """Yield a piece, wait for a byte from the file, use some CPU time, and yield another piece."""
    yield "first"
    file.read(1)
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    yield "second"


def environment() -> Iterator[str]:
    yield from sorted(os.environ)


def read(file: IO[bytes], size: int) -> Iterator[bytes]:
    file.seek(0)
    yield file.read(size)


def spin_after(piece: str) -> Iterator[str]:
    yield piece
    while True:
        pass


def sleep_after(piece: str) -> Iterator[str]:
    yield piece
    time.sleep(3600)


def fill_memory() -> Iterator[str]:
    yield str(len(bytes(100_000_000_000)))  # in one step, because a busy machine takes long to fill it in several


def pour(size: int) -> Iterator[bytes]:
    while True:
        yield b"x" * size


def die() -> Iterator[str]:
    yield "last words"
    os._exit(3)


def fail() -> Iterator[str]:
    raise ValueError("no such luck")
    yield ""


def write_file(path: str) -> Iterator[str]:
    with open(path, "wb") as file:
        file.write(b"x")
    yield "written"
