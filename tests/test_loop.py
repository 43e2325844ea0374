"""The tests' event loop drops connections that tests have closed, and reports those that they left open."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.loop import TestLoop
from tests.support.push_service import HOST, certificates

MORE_THAN_IS_READ = b"x" * 20_000_000


@contextmanager
def unclosed() -> Iterator[list[str]]:
    """Collect the reports of connections that are still open. At the end of the block, their loop must be closed."""
    found: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
        gc.collect()
    found += [str(warning.message) for warning in caught if issubclass(warning.category, ResourceWarning)]


def left_open(loop: asyncio.AbstractEventLoop, *, closes: bool) -> bool:
    """Return whether a connection is still open after its loop was closed."""

    async def send(address: tuple[str, int]) -> None:
        _reader, writer = await asyncio.open_connection(*address)
        writer.write(MORE_THAN_IS_READ)
        if closes:
            writer.close()
        else:
            left.append(writer)

    left: list[asyncio.StreamWriter] = []
    with socket.create_server(("127.0.0.1", 0)) as silent, unclosed() as found:
        loop.run_until_complete(send(silent.getsockname()))
        loop.close()
        left.clear()
    return bool(found)


@pytest.mark.parametrize(
    ("make", "closes", "is_open"),
    [(TestLoop, True, False), (TestLoop, False, True), (asyncio.SelectorEventLoop, True, True)],
)
def test_closed_connection_ends_with_its_loop(
    make: Callable[[], asyncio.AbstractEventLoop], closes: bool, is_open: bool
) -> None:
    """Python's own loop shows why this one is needed."""
    assert left_open(make(), closes=closes) is is_open


LOOPS = [(TestLoop, False), (asyncio.SelectorEventLoop, True)]


@pytest.mark.parametrize(("make", "is_open"), LOOPS)
def test_connection_that_a_server_has_closed_ends_with_the_loop(
    make: Callable[[], asyncio.AbstractEventLoop], is_open: bool
) -> None:
    async def send(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(MORE_THAN_IS_READ)
        writer.close()
        has_sent.set()

    loop, has_sent = make(), asyncio.Event()
    with unclosed() as found:
        server = loop.run_until_complete(asyncio.start_server(send, "127.0.0.1", 0))
        with socket.create_connection(server.sockets[0].getsockname()):
            loop.run_until_complete(has_sent.wait())
            server.close()
            loop.close()
    assert bool(found) is is_open


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(("make", "is_open"), LOOPS)
def test_tls_connection_ends_with_its_loop_if_only_one_side_has_closed_it(
    tmp_path: Path, make: Callable[[], asyncio.AbstractEventLoop], is_open: bool, times: int
) -> None:
    """A client may close it more than once."""
    context, trusted = certificates(tmp_path)
    is_over = threading.Event()

    def accept(listener: socket.socket) -> None:
        with context.wrap_socket(listener.accept()[0], server_side=True):
            is_over.wait()

    async def connect(address: tuple[str, int], trusted: ssl.SSLContext) -> None:
        _reader, writer = await asyncio.open_connection(*address, ssl=trusted, server_hostname=HOST)
        for _time in range(times):
            writer.close()

    loop = make()
    with socket.create_server(("127.0.0.1", 0)) as listener, unclosed() as found:
        peer = threading.Thread(target=accept, args=(listener,))
        peer.start()
        loop.run_until_complete(connect(listener.getsockname(), trusted))
        loop.close()
        is_over.set()
        peer.join()
    assert bool(found) is is_open


def test_connections_to_a_port_are_aborted() -> None:
    """Others stay open, and stay reported."""

    async def connect(*ports: int) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, TestLoop)
        for port in ports:
            await loop.create_connection(asyncio.Protocol, "127.0.0.1", port)
        loop.abort_connections_to(ports[0])

    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        loop = TestLoop()
        with unclosed() as found:
            loop.run_until_complete(connect(one.getsockname()[1], other.getsockname()[1]))
            loop.close()
    assert len([report for report in found if "transport" in report]) == 1, found


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
