"""A network to Redis that drops everything without an error, for web processes and workers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from chat.models import User
from tests.live.states import assert_shows, is_at
from tests.postgres.test_workers import answer, watch
from tests.support.database import address
from tests.support.redis import Redis
from tests.support.remote_viewer import RemoteViewer
from tests.support.rest import check_rest
from tests.support.silent_proxy import SilentProxy
from tests.support.team import Team

pytestmark = [pytest.mark.postgres, pytest.mark.server, pytest.mark.usefixtures("transactional_db")]


async def test_silent_redis_costs_no_turn_and_no_start(prepared: Path, tmp_path: Path, redis: Redis, ana: User) -> None:
    """RUN-14, LIVE-01, LIVE-02: a turn ends, a process starts, and viewers sync. Later, events are live again."""
    async with SilentProxy(redis.port) as proxy:
        team = Team(prepared, tmp_path, address(), f"redis://127.0.0.1:{proxy.port}/0")
        try:
            session = await team.node.session(ana)
            web, _worker = await asyncio.gather(team.web("web"), team.worker("worker"))
            viewer = await watch(team, session, ana, web)
            viewer.send({"type": "send", "text": "tools", "key": "once"})
            await viewer.until(lambda: len(answer(viewer)) > 5)
            proxy.lose()
            viewers = [viewer, await watch(team, session, ana, await team.web("late"))]
            viewers[1].send({"type": "send", "text": "echo still there", "key": "twice"})
            for each in viewers:
                await each.until(lambda: "still there" in each.client.texts)  # noqa: B023  # waits within the round
            await team.node.idle(session)
            await team.node.do(check_rest, session)
            truth = await team.node.snapshot(session)
            for each in viewers:
                await each.until(lambda: is_at(each.client, truth))  # noqa: B023  # likewise
                assert_shows(each.client, truth)
            proxy.recover()
            await are_live(viewers)
            for each in viewers:
                await each.leave()
        finally:
            await team.close()


async def are_live(viewers: list[RemoteViewer]) -> None:
    """Send messages until both see text of a streaming answer, which the beacon does not send."""
    number = 0
    for each in viewers:
        each.frames.clear()
    while not all(any(frame["type"] == "text_delta" for frame in each.frames) for each in viewers):
        number += 1
        viewers[0].send({"type": "send", "text": f"echo {number}", "key": f"live {number}"})
        for each in viewers:
            await each.until(lambda: str(number) in each.client.texts)  # noqa: B023  # waits within the round
