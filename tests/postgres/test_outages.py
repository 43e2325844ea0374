"""A PostgreSQL server that restarts, or is down for a while, while Parley runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import LiteralString

import pytest
from django.db import connection
from psycopg.sql import SQL, Identifier

from agents.providers.scripted import Gate
from chat.models import SessionRun, User
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
