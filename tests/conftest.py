"""Fixtures for tests that run Parley."""

from __future__ import annotations

import fcntl
import gc
import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import hypothesis
import pytest
import pytest_asyncio
from django.db import connection
from django.test import TransactionTestCase, override_settings
from pytest_django import DjangoDbBlocker
from pytest_django.fixtures import Settings

from chat import agents_setup
from chat.limits import counters
from chat.models import User, Workspace
from tests.support.effort import cases
from tests.support.emptying import Emptying
from tests.support.prepared import copy, prepare
from tests.support.testing_node import TestNode, person

HERE = Path(__file__).parent
# What these folders test depends on the database: `make test` runs them on SQLite and on PostgreSQL.
BOTH_DATABASES = ("models", "running", "services")


def pytest_configure() -> None:
    """Make garbage collection rarer, which saves a twelfth of the time, and try a share of the random cases."""
    gc.set_threshold(20_000)
    hypothesis.settings.register_profile("share", max_examples=cases(100), deadline=None)
    hypothesis.settings.load_profile("share")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import what a run for both databases deselects: that would be a quarter of its time."""
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    if not is_test or "both_databases" not in config.getoption("markexpr"):
        return None
    in_folder = any(collection_path.is_relative_to(HERE / folder) for folder in BOTH_DATABASES)
    return None if in_folder or re.search(r"mark\.(both_databases|postgres)", collection_path.read_text()) else True


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what uses a database, whole folders for both databases, and leave out what the other database alone has."""
    for item in items:
        if uses_database(item):
            item.add_marker(pytest.mark.database)
            if any(item.path.is_relative_to(HERE / folder) for folder in BOTH_DATABASES):
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
    """A data folder with all tables and static files, to be copied. The workers of a run share it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "prepared"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            prepare(folder.with_suffix(".unfinished")).rename(folder)
        return folder


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
async def node(transactional_db: None) -> AsyncIterator[TestNode]:
    """A running node; script its model before sending."""
    node = TestNode()
    node.script([])
    await node.start()
    yield node
    await node.stop()
    await node.threads.close()
