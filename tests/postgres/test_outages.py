"""A PostgreSQL server that restarts, or is down for a while, while Parley runs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import LiteralString

import pytest
from django.db import OperationalError, connection
from psycopg.sql import SQL, Identifier

from agents.providers.scripted import Gate
from chat.models import SessionRun, User
from config.postgres import POOL
from tests.support.database import maintenance
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode

pytestmark = pytest.mark.postgres


def door(statement: LiteralString) -> None:
    """Allow or refuse connections to the database, and cut all present ones."""
    name = connection.settings_dict["NAME"]
    with maintenance() as server:
        server.execute(SQL(statement).format(Identifier(name)))
        server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])


@pytest.fixture(autouse=True)
def _own_connection(transactional_db: None) -> Iterator[None]:
    """A test connection that is closed afterwards: it was cut too, and a new one has to delete the test's rows."""
    yield
    connection.close()


@contextmanager
def away() -> Iterator[None]:
    """Refuse all connections until the context ends."""
    door("ALTER DATABASE {} ALLOW_CONNECTIONS false")
    try:
        yield
    finally:
        door("ALTER DATABASE {} ALLOW_CONNECTIONS true")


async def test_restart_in_mid_answer_costs_nothing(node: TestNode, ana: User) -> None:
    """RUN-10, RUN-15: although every connection is cut, the answer continues, and the next message is answered."""
    more = Gate()
    node.script([["One, ", more, "two."], ["Again."]])
    session = await node.session(ana)
    await node.send(session, ana, "Count")
    await more.reached()
    door("ALTER DATABASE {} ALLOW_CONNECTIONS true")
    more.open()
    await node.idle(session)
    await node.send(session, ana, "More")
    await node.idle(session)
    assert [text for type, _, text in await node.shown(session) if type == "text"] == [
        "Count",
        "One, two.",
        "More",
        "Again.",
    ]
    await node.do(check_rest, session)


async def test_answer_waits_for_a_database_that_is_away(
    node: TestNode, ana: User, caplog: pytest.LogCaptureFixture
) -> None:
    """RUN-10, RUN-15: the user gets the answer instead of an error after the outage, and the claim is kept until
    then."""
    more = Gate()
    node.script([["One, ", more, "two."]])
    session = await node.session(ana)
    await node.send(session, ana, "Count")
    await more.reached()
    epoch = (await node.do(SessionRun.objects.get, pk=session.pk)).epoch
    with away():
        more.open()
        async with asyncio.timeout(20):
            while "not available" not in caplog.text:  # noqa: ASYNC110  # a log has no event
                await asyncio.sleep(0.01)
    await node.idle(session)
    assert (await node.shown(session))[2] == ("text", "complete", "One, two.")
    assert (await node.do(SessionRun.objects.get, pk=session.pk)).epoch == epoch
    await node.do(check_rest, session)


def test_first_requests_after_a_restart_are_answered(ana: User) -> None:
    """RUN-10: all idle connections died with the server; a request replaces them instead of trying each of them."""
    connection.close()
    count: int = POOL["max_size"]
    together = threading.Barrier(count)

    def ask() -> None:
        try:
            assert User.objects.filter(pk=ana.pk).exists()
            together.wait(20)
        finally:
            connection.close()

    def ask_together() -> None:
        with ThreadPoolExecutor(count) as threads:
            for answer in [threads.submit(ask) for _ in range(count)]:
                answer.result()

    ask_together()
    door("ALTER DATABASE {} ALLOW_CONNECTIONS true")
    assert User.objects.exists()
    connection.close()
    ask_together()


def test_request_after_an_outage_is_answered(ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """RUN-10: while the server is away, the pool does not wait longer and longer before it tries again."""
    connection.close()
    pool = connection.pool  # type: ignore[attr-defined]  # the stubs do not know it
    with away():
        monkeypatch.setattr(pool, "timeout", 0.5)
        until = time.monotonic() + 8  # after which the pauses would have become longer than a request waits
        while time.monotonic() < until:
            with pytest.raises(OperationalError):
                User.objects.exists()
    monkeypatch.setattr(pool, "timeout", POOL["timeout"])
    assert User.objects.exists()
