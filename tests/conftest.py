"""Fixtures for tests that run Parley."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from django.db import connection
from django.test import TransactionTestCase, override_settings
from pytest_django import DjangoDbBlocker
from pytest_django.fixtures import Settings

from chat import agents_setup
from chat.limits import counters
from chat.models import User, Workspace
from tests.support.emptying import Emptying
from tests.support.house import House, person
from tests.support.prepared import copy, prepare

HERE = Path(__file__).parent
# What these folders test depends on the database: `make test` runs them on SQLite and on PostgreSQL.
BOTH_DATABASES = ("models", "running", "services")


def pytest_configure() -> None:
    """Looking for dead cycles after each seven hundred new objects would be a twelfth of the tests' time."""
    gc.set_threshold(20_000)


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark whole folders for both databases, and leave out what holds on the other database alone."""
    for item in items:
        if any(item.path.is_relative_to(HERE / folder) for folder in BOTH_DATABASES) and uses_database(item):
            item.add_marker(pytest.mark.both_databases)
    other = "postgres" if connection.vendor == "sqlite" else "sqlite"
    left_out = [item for item in items if item.get_closest_marker(other)]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def uses_database(item: pytest.Item) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    return bool(item.get_closest_marker("django_db") or {"db", "transactional_db"} & set(fixtures))


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with all tables and static files, to be copied."""
    return prepare(tmp_path_factory.mktemp("prepared") / "data")


@pytest.fixture
def data(tmp_path: Path, prepared: Path) -> Path:
    """A data folder for one test's server."""
    return copy(prepared, tmp_path / "data")


@pytest.fixture(autouse=True)
def _fresh_agents() -> Iterator[None]:
    """No test inherits another one's providers."""
    agents_setup.reset()
    yield
    agents_setup.reset()


@pytest.fixture(autouse=True)
def _fresh_limits() -> None:
    """No test inherits what another one has spent of a rate limit."""
    counters.reset()


@pytest.fixture(autouse=True, scope="session")
def _quick_passwords() -> Iterator[None]:
    """Half a second for each person would be most of the tests' time."""
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The tests' database, which is emptied quickly."""
    with django_db_blocker.unblock():
        emptying = Emptying(TransactionTestCase._fixture_teardown)  # type: ignore[attr-defined]  # left out of the stubs
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda test: emptying(test))
        yield


@pytest.fixture
def own_files(settings: Settings, tmp_path: Path) -> None:
    """Files that a test stores are its own."""
    settings.MEDIA_ROOT = tmp_path / "files"


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
