"""Fixtures for tests with several processes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.support.database import address
from tests.support.redis import Redis
from tests.support.team import Team


@pytest_asyncio.fixture
async def team(transactional_db: None, prepared: Path, tmp_path: Path, redis: Redis) -> AsyncIterator[Team]:
    """A team on the test's own database."""
    team = Team(prepared, tmp_path, address(), redis.url)
    yield team
    await team.close()
