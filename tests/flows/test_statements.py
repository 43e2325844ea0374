"""The number of database statements of a turn."""

from __future__ import annotations

import asyncio

import pytest
from pytest_django.fixtures import Settings

from agents.events import Usage
from agents.providers.scripted import Gate
from chat.models import User
from chat.runner import runtime
from tests.support.statements import watched_statements
from tests.support.testing_node import TestNode

pytestmark = pytest.mark.both_databases

# Checks for due sessions and heartbeats come at times that do not depend on the turn.
AT_THEIR_TIMES = ('AS "pk"', 'FROM "chat_worker"', 'UPDATE "chat_worker"', '"chat_sessionrun"."owner_id" = %s')
NO_ROWS = ("BEGIN", "COMMIT", "SET ", "PRAGMA", "SELECT set_config")


async def test_turn_takes_eighteen_statements(transactional_db: None, ana: User, settings: Settings) -> None:
    """RUN-01: a turn takes at most eighteen statements, from Send to rest.
    The first row of the answer and its end are in separate transactions. Streaming text takes three more, four times a
    second, for all sessions of a process together.
    """
    settings.TITLES, settings.CHECK_CONTEXT_CACHE = "words", False
    node, gate = TestNode(), Gate()
    node.script([["Fine.", Usage(1, 1)], ["Once ", gate, "upon a time", Usage(10, 5)]])
    with watched_statements() as statements:
        await node.start()
        session = await node.session(ana)
        await node.send(session, ana, "Hi")
        await at_rest()
        statements.clear()
        await node.send(session, ana, "Tell")
        await gate.reached()
        gate.open()
        await at_rest()
        seen = [each.strip() for each in statements]
        await node.stop()
    await node.threads.close()
    seen = [each for each in seen if not each.startswith(NO_ROWS) and not any(part in each for part in AT_THEIR_TIMES)]
    assert len(seen) <= 18, "\n".join(seen)


async def at_rest() -> None:
    """Wait until no session runs, without querying the database."""
    runner = runtime._runtime and runtime._runtime.runner
    assert runner
    async with asyncio.timeout(20):
        while runner.running or runner._reserved:  # noqa: ASYNC110  # the runner has no event for it
            await asyncio.sleep(0.005)
