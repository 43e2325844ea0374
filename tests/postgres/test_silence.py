"""A worker whose network to PostgreSQL drops all packets without an error."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from agents.providers.scripted import Gate
from chat.db import Threads
from chat.models import ChatMessage, SessionRun, User
from chat.runner.runner import THREADS, Runner
from tests.support.listener import Listener
from tests.support.rest import check_rest
from tests.support.silent_proxy import SilentProxy
from tests.support.testing_node import TestNode

pytestmark = pytest.mark.postgres


@contextmanager
def through(proxy: SilentProxy) -> Iterator[None]:
    """Send connections that are opened now through the proxy."""
    place = {name: connection.settings_dict[name] for name in ("HOST", "PORT")}
    connection.settings_dict |= {"HOST": "127.0.0.1", "PORT": str(proxy.port)}
    try:
        yield
    finally:
        connection.settings_dict |= place


async def connect(threads: Threads, count: int) -> None:
    """Open the connections of all threads."""
    together = threading.Barrier(count)

    def open_one() -> None:
        together.wait(20)
        connection.ensure_connection()

    await asyncio.gather(*[threads.run(open_one) for _ in range(count)])


def server_socket() -> Path:
    options = connection.settings_dict["OPTIONS"]
    return Path(connection.settings_dict["HOST"] or options["host"]) / ".s.PGSQL.5432"


async def test_worker_that_hears_nothing_publishes_nothing(
    transactional_db: None, ana: User, settings: Settings
) -> None:
    """RUN-15, LIVE-01: another worker takes the session over, and later text of the first worker is not shown.

    When the network is back, the first worker learns of the lost claim and writes nothing.
    """
    settings.RUNNER, settings.LEASE_SECONDS = "none", 1.0
    node, other = TestNode(), Runner()
    gates = [Gate(), Gate(), Gate()]
    node.script([["Once", gates[0], " upon", gates[1]], ["Twice", gates[2], "."]])
    await node.start()
    await connect(node.threads, 2)
    session = await node.session(ana)
    async with SilentProxy(server_socket()) as proxy:
        with through(proxy):
            lonely = Runner()
            await lonely.start()
            await connect(lonely._threads, THREADS)
            await connect(lonely._writer._threads, 1)
        await node.send(session, ana, "Go")
        await gates[0].reached()
        await node.until(lambda: ChatMessage.objects.filter(session=session, status="streaming").exists())
        listener = Listener(session)
        await listener.start()
        await other.start()
        proxy.flowing.clear()
        await gates[2].reached()
        assert time.monotonic() > lonely._safe_until
        gates[0].open()
        await gates[1].reached()
        gates[2].open()
        await node.idle(session)
        assert await listener.heard() == "."
        rows = await node.shown(session)
        proxy.flowing.set()
        async with asyncio.timeout(20):
            while node.provider.streaming:  # noqa: ASYNC110  # until the run is cut
                await asyncio.sleep(0.01)
        await lonely.stop()
        await other.stop()
    assert await node.shown(session) == rows
    assert rows[-2] == ("text", "complete", "Twice.")
    assert (await node.do(SessionRun.objects.get, pk=session.pk)).epoch == 2
    await node.do(check_rest, session)
    await node.stop()
    await node.threads.close()
