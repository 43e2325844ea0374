"""More turns than all workers can run at the same time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from pytest_django.fixtures import Settings

from agents.providers.base import Request
from agents.providers.scripted import Gate, Reply
from chat.models import Session, SessionRun, User
from chat.runner.runner import Runner
from chat.services.messages.sending import send_message
from chat.services.sessions.lifecycle import create_session
from tests.support.effort import cases
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode, person

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("transactional_db")]

RUNNERS = 4
TURNS = cases(500)
EACH = TURNS // 5 // RUNNERS
PLACES = EACH * RUNNERS
# Beside the workspace that requested half of all turns first.
OTHERS = 5


@asynccontextmanager
async def running(count: int) -> AsyncIterator[None]:
    runners = [Runner() for _ in range(count)]
    await asyncio.gather(*(runner.start() for runner in runners))
    try:
        yield
    finally:
        await asyncio.gather(*(runner.stop() for runner in runners))


def ask(authors: Sequence[User]) -> list[Session]:
    """Send one message for each author in turn, each in a new session; its text is the author's name and a number."""
    asked: Counter[str] = Counter()
    sessions = []
    for author in authors:
        sessions.append(session := create_session(owner=author, title="Talk"))
        send_message(session=session, author=author, text=f"{author.username} {asked[author.username]}")
        asked[author.username] += 1
    return sessions


def is_done() -> bool:
    return not SessionRun.objects.exclude(state="idle", owner=None).exists()


@pytest_asyncio.fixture
async def node() -> AsyncIterator[TestNode]:
    """A node that reads the rows, without a runner of its own."""
    node = TestNode()
    yield node
    await node.threads.close()


async def test_more_turns_than_places_all_end_in_a_fair_order(node: TestNode, settings: Settings) -> None:
    """RUN-01, RUN-15: each turn runs once, and never more at a time than there are places.
    The oldest are first, and workspaces take turns.
    """
    settings.RUNNER, settings.CAPACITY, settings.QUOTAS = "none", EACH, "running_turns=0"
    gate, most = Gate(), 0

    def reply(request: Request) -> Reply:
        nonlocal most
        most = max(most, node.provider.streaming)
        return ["Yes", gate, "."]

    node.script(reply)
    eager, *others = await node.do(lambda: [person(f"P{number}") for number in range(1 + OTHERS)])
    each = TURNS // 2 // OTHERS
    authors = [*[eager] * (TURNS - each * OTHERS), *(others * each)]
    sessions = await node.threads.run(ask, authors)
    async with running(RUNNERS):
        async with asyncio.timeout(60):
            while node.provider.streaming < PLACES:  # noqa: ASYNC110  # requests have no event
                await asyncio.sleep(0.01)
        gate.open()
        async with asyncio.timeout(120):
            while not await node.threads.run(is_done):  # noqa: ASYNC110  # the runners change the rows
                await asyncio.sleep(0.05)
    began = [request.messages[-1].text for request in node.provider.requests]
    assert len(began) == len(set(began)) == TURNS
    assert most == PLACES
    for session in sessions:
        await node.threads.run(check_rest, session)
    for author in (eager, *others):
        numbers = [int(text.split()[1]) for text in began if text.split()[0] == author.username]
        assert max(abs(number - place) for place, number in enumerate(numbers)) <= PLACES
    last = max(place for place, text in enumerate(began) if text.split()[0] != eager.username)
    assert last < each * (OTHERS + 1) + PLACES
