"""The tests' event loop drops connections that tests have closed, and reports those that they left open."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import warnings
from collections.abc import Callable

import pytest

from tests.support.loop import TestLoop

MORE_THAN_IS_READ = b"x" * 20_000_000


def left_open(loop: asyncio.AbstractEventLoop, *, closes: bool) -> bool:
    """Return whether a connection is still open after its loop was closed."""

    async def send(address: tuple[str, int]) -> asyncio.StreamWriter:
        _reader, writer = await asyncio.open_connection(*address)
        writer.write(MORE_THAN_IS_READ)
        if closes:
            writer.close()
        return writer

    with socket.create_server(("127.0.0.1", 0)) as silent, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        writer = loop.run_until_complete(send(silent.getsockname()))
        loop.close()
        del writer
        gc.collect()
    return any(issubclass(warning.category, ResourceWarning) for warning in caught)


@pytest.mark.parametrize(
    ("make", "closes", "is_open"),
    [(TestLoop, True, False), (TestLoop, False, True), (asyncio.SelectorEventLoop, True, True)],
)
def test_closed_connection_ends_with_its_loop(
    make: Callable[[], asyncio.AbstractEventLoop], closes: bool, is_open: bool
) -> None:
    """Python's own loop shows why this one is needed."""
    assert left_open(make(), closes=closes) is is_open


def test_connection_that_has_sent_all_is_left_alone() -> None:
    """It has no loop any more."""

    async def send(address: tuple[str, int]) -> asyncio.StreamWriter:
        _reader, writer = await asyncio.open_connection(*address)
        writer.write(MORE_THAN_IS_READ)
        writer.close()
        await writer.wait_closed()
        return writer

    loop = TestLoop()
    with socket.create_server(("127.0.0.1", 0)) as server:
        reader = threading.Thread(target=read_all, args=(server,))
        reader.start()
        writer = loop.run_until_complete(send(server.getsockname()))
        reader.join()
        loop.close()
    assert writer.is_closing()


def read_all(server: socket.socket) -> None:
    with server.accept()[0] as peer:
        while peer.recv(1_000_000):
            pass


async def test_tests_have_it() -> None:
    """Pytest takes it for every test."""
    assert isinstance(asyncio.get_running_loop(), TestLoop)
