"""Fixtures for tests that run Parley."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from pytest_django.fixtures import Settings

from chat import agents_setup
from chat.models import User, Workspace
from tests.support.house import House, person


@pytest.fixture(autouse=True)
def _fresh_agents() -> Iterator[None]:
    """No test inherits another one's providers."""
    agents_setup.reset()
    yield
    agents_setup.reset()


@pytest.fixture(autouse=True)
def _quick_passwords(settings: Settings) -> None:
    """Half a second for each person would be most of the tests' time."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def workspace(db: None) -> Workspace:
    return Workspace.objects.create(name="Team")


@pytest.fixture
def ana(workspace: Workspace) -> User:
    return person("Ana", workspace)


@pytest.fixture
def bo(workspace: Workspace) -> User:
    return person("Bo", workspace)


@pytest_asyncio.fixture
async def house(transactional_db: None) -> AsyncIterator[House]:
    """A running node; script its model before sending."""
    house = House()
    house.script([])
    await house.start()
    yield house
    await house.stop()
    await house.threads.close()
