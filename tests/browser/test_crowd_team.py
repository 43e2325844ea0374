"""LIVE-01: open pages show what a reload shows, when their servers share PostgreSQL and Redis with a worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.browser.conftest import CONFIG
from tests.browser.crowd_team import TeamServers
from tests.browser.person import Person
from tests.browser.test_crowd import SEEDS, TOOLS, live_together
from tests.support.redis import Redis
from tests.support.shared_server import LIMITS
from tests.wire.server import WireServer

pytestmark = pytest.mark.postgres
# In a normal run, a fourth of the crowds of a single server.
TEAMS = SEEDS[::4]


@pytest_asyncio.fixture(loop_scope="session")
async def server(
    transactional_db: None, prepared: Path, tmp_path: Path, redis: Redis, model: WireServer
) -> AsyncIterator[TeamServers]:
    file = tmp_path / "parley.toml"
    file.write_text((CONFIG + TOOLS).format(url=model.openai_url))
    team = TeamServers(tmp_path, prepared, redis, {"PARLEY_CONFIG": str(file), "LIMITS": LIMITS})
    model.open()
    try:
        await team.start()
        yield team
    finally:
        model.close()
        await asyncio.to_thread(team.kill)


@pytest.mark.every_look
@pytest.mark.parametrize("seed", TEAMS)
async def test_open_pages_of_a_team_show_what_a_reload_shows(
    ana: Person, browser: Browser, server: TeamServers, model: WireServer, seed: int
) -> None:
    """LIVE-01: the pages of two servers are equal to fresh pages, after failures of processes and of Redis."""
    await live_together(ana, browser, model, server, server.origins, seed)
