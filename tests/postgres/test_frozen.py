"""A PostgreSQL server that is suspended, or is replaced by its replica."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import ClientTimeout, WSMsgType

from chat.live.subscriber import TRY_LATER
from chat.models import SessionRun
from tests.live.states import assert_shows, is_at
from tests.postgres.test_workers import answer, watch
from tests.support.own_postgres import OwnPostgres, address_of, in_front_of, looking_at, own_servers
from tests.support.redis import Redis
from tests.support.rest import check_rest
from tests.support.team import Team
from tests.support.testing_node import person

pytestmark = [pytest.mark.postgres, pytest.mark.server]

LEASE_SECONDS = 2
# The seconds in which the server must answer without the database, also on a busy machine.
PATIENCE = ClientTimeout(total=40)


@pytest_asyncio.fixture
async def place(prepared: Path, tmp_path: Path, redis: Redis, db: None) -> AsyncIterator[tuple[Team, OwnPostgres]]:
    """Processes on their own PostgreSQL server."""
    async with AsyncExitStack() as stack:
        (server,) = stack.enter_context(own_servers())
        await asyncio.to_thread(server.create)
        await asyncio.to_thread(server.start)
        proxy = await stack.enter_async_context(in_front_of(server))
        stack.enter_context(looking_at(proxy))
        team = Team(prepared, tmp_path, address_of(proxy), redis.url)
        stack.push_async_callback(team.close)
        stack.callback(server.thaw)
        yield team, server


async def test_frozen_database_cuts_no_turn_and_leaves_no_one_waiting(place: tuple[Team, OwnPostgres]) -> None:
    """RUN-15, LIVE-04: while the database is frozen for longer than a lease, open sockets are answered, and new sockets
    and pages are refused until later. Afterwards the same worker completes the answer."""
    team, server = place
    web, _worker = await team.web("web"), await team.worker("worker")
    ana = await team.node.do(person, "Ana")
    session = await team.node.session(ana)
    viewer = await watch(team, session, ana, web)
    viewer.send({"type": "send", "text": "slow", "key": "once"})
    await viewer.until(lambda: len(answer(viewer)) > 20)
    epoch = (await team.node.do(SessionRun.objects.get, pk=session.pk)).epoch
    server.freeze()
    viewer.send({"type": "ping"})
    await viewer.until(lambda: any(frame["type"] == "pong" for frame in viewer.frames))
    async with viewer.http.get(f"{web.address}/", timeout=PATIENCE) as page:
        assert (page.status, page.headers["Retry-After"]) == (503, "2")
    async with viewer.http.ws_connect(f"{web.address}/ws/sessions/{session.pk}/", origin=web.address) as late:
        assert (await late.receive(40)).type is WSMsgType.CLOSE
        assert late.close_code == TRY_LATER
    server.thaw()
    await viewer.until(lambda: viewer.client.rows[-1]["type"] == "turn_done")
    await team.node.idle(session)
    await team.node.do(check_rest, session)
    shown = await team.node.shown(session)
    assert [(type, status) for type, status, _ in shown] == [
        ("turn_start", "complete"),
        ("text", "complete"),
        ("text", "complete"),
        ("turn_done", "complete"),
    ]
    assert (await team.node.do(SessionRun.objects.get, pk=session.pk)).epoch == epoch
    truth = await team.node.snapshot(session)
    await viewer.until(lambda: is_at(viewer.client, truth))
    assert_shows(viewer.client, truth)
    await viewer.leave()
