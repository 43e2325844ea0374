"""Fixtures for tests that run Parley."""

from __future__ import annotations

import asyncio
import fcntl
import functools
import gc
import os
import re
import secrets
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
import pytest_asyncio
from django.db import connection
from django.test import TransactionTestCase, override_settings
from pytest_django import DjangoDbBlocker
from pytest_django.fixtures import Settings

from agents import added_tools
from chat import agents_setup
from chat.limits import counters
from chat.models import User, Workspace
from tests.support.effort import cases, shorten_collections
from tests.support.emptying import Emptying
from tests.support.loop import TestLoop
from tests.support.prepared import copy, prepare
from tests.support.redis import Redis
from tests.support.testing_node import TestNode, person
from tests.support.tests_database import tests_database

if TYPE_CHECKING:
    from tests.support.s3 import S3Server

HERE = Path(__file__).parent
WORKER = os.environ.get("PYTEST_XDIST_WORKER")
# Folders whose tests depend on the database. `make test` runs them on SQLite and on PostgreSQL.
BOTH_DATABASES = ("models", "running", "services")


def pytest_configure() -> None:
    """Make garbage collections rarer, which saves a twelfth of the time, and set the number of random cases."""
    gc.set_threshold(20_000)
    os.environ.setdefault("CHECK_CONTEXT_CACHE", "1")  # in servers that tests start, too
    hypothesis.settings.register_profile("share", max_examples=cases(100), deadline=None)
    hypothesis.settings.load_profile("share")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files that a run for both databases deselects, because that would take a quarter of its time."""
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    if not is_test or "both_databases" not in config.getoption("markexpr"):
        return None
    in_folder = any(collection_path.is_relative_to(HERE / folder) for folder in BOTH_DATABASES)
    return None if in_folder or re.search(r"mark\.(both_databases|postgres)", collection_path.read_text()) else True


def pytest_collection_finish() -> None:
    """Leave modules and tests out of garbage collections, because these took a tenth of the time with them."""
    shorten_collections()


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that use a database, and those for both databases. Deselect tests that only the other database has."""
    for item in items:
        if uses_database(item):
            item.add_marker(pytest.mark.database)
            if any(item.path.is_relative_to(HERE / folder) for folder in BOTH_DATABASES):
                item.add_marker(pytest.mark.both_databases)
    other = "postgres" if connection.vendor == "sqlite" else "sqlite"
    left_out = [item for item in items if item.get_closest_marker(other)]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def _asyncio_loop_factory() -> type[asyncio.AbstractEventLoop]:
    """The event loop of asynchronous tests, which leaves no connections open.

    This replaces a fixture of pytest-asyncio. Its hook for loop factories would end session fixtures, such as the
    browser and the servers, after every test.
    """
    return TestLoop


def uses_database(item: pytest.Item) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    return bool(item.get_closest_marker("django_db") or {"db", "transactional_db"} & set(fixtures))


def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a temporary folder that the processes of this run share."""
    base = tmp_path_factory.getbasetemp()
    return base if WORKER is None else base.parent


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with all tables and static files, which tests copy. The processes of a run share it."""
    folder = shared_folder(tmp_path_factory) / "prepared"
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
    """Reset the providers before and after each test."""
    agents_setup.reset()
    yield
    agents_setup.reset()


@pytest.fixture(autouse=True, scope="session")
def _known_packages() -> Iterator[None]:
    """Search for installed packages with tools only once, because it takes nearly all of the time to load agents."""
    look = functools.cache(lambda _path, group: entry_points(group=group))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(added_tools, "entry_points", lambda *, group: look(tuple(sys.path), group))
        yield


@pytest.fixture(autouse=True)
def _fresh_limits() -> None:
    """Reset the rate limits before each test."""
    counters.reset()


@pytest.fixture(autouse=True, scope="session")
def _quick_passwords() -> Iterator[None]:
    """Use a fast password hash. The real one takes half a second per user, which would be most of the tests' time."""
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


@pytest.fixture(autouse=True, scope="session")
def _checked_contexts() -> Iterator[None]:
    """Compare the contexts that processes have cached with the rows at each request (MSG-01)."""
    with override_settings(CHECK_CONTEXT_CACHE=True):
        yield


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """The tests' database, which is created and emptied quickly."""
    at_end = ExitStack()
    with django_db_blocker.unblock():
        at_end.enter_context(tests_database(WORKER, shared_folder(tmp_path_factory)))
        emptying = Emptying(TransactionTestCase._fixture_teardown)  # type: ignore[attr-defined]  # left out of the stubs
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda test: emptying(test))
        yield
    with django_db_blocker.unblock():
        at_end.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests with the marker `each_storage` twice: with their files in a folder and on S3."""
    if "own_files" in metafunc.fixturenames and metafunc.definition.get_closest_marker("each_storage"):
        metafunc.parametrize("own_files", ["folder", "s3"], indirect=True)


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """An S3 server for the tests of one process. Each test uses its own prefix."""
    from tests.support.s3 import s3_server  # few tests need it, and it takes half a second

    with s3_server() as server:
        yield server


@pytest.fixture
def own_files(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> None:
    """Separate storage for the test's files: a folder, or for the parameter `s3` a bucket."""
    settings.MEDIA_ROOT = tmp_path / "files"
    if getattr(request, "param", "") == "s3":
        store_in(request.getfixturevalue("s3"), secrets.token_hex(4), settings)


def store_in(server: S3Server, prefix: str, settings: Settings) -> None:
    """Keep the files of this process in a bucket."""
    settings.S3_BUCKET = server.options(prefix)["bucket"]
    settings.S3_PREFIX = prefix
    backend = {"BACKEND": "chat.s3.S3Storage", "OPTIONS": server.options(prefix)}
    settings.STORAGES = {**settings.STORAGES, "default": backend}


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
async def redis(tmp_path: Path) -> AsyncIterator[Redis]:
    """A Redis server for a single test."""
    server = Redis(tmp_path)
    await server.start()
    yield server
    server.kill()


@pytest_asyncio.fixture
async def node(transactional_db: None) -> AsyncIterator[TestNode]:
    """A running node. Script its model before sending messages."""
    node = TestNode()
    node.script([])
    await node.start()
    yield node
    await node.stop()
    await node.threads.close()
