"""Fixtures for tests in a real browser, with a real Parley whose model is a server with OpenAI's format."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.browser.gallery import Showcase, open_showcase
from tests.browser.launch import Browsers
from tests.browser.person import Person
from tests.support.prepared import copy
from tests.support.server import ROOT, Server
from tests.support.shared_server import SharedServers
from tests.wire.server import WireServer

HERE = Path(__file__).parent
CONFIG = """
default_model = "wire/wire-large"
[providers.wire]
type = "openai"
base_url = "{url}"
max_retries = 0
models = {{ wire-large = {{ context_window = 1000 }}, wire-small = {{ reasoning_efforts = ["low", "high"] }} }}
[agents.assistant]
model = "wire/wire-large"
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the core flows in both browsers, and with `make test-all` also the tests marked `any_browser`."""
    if metafunc.definition.get_closest_marker("both_browsers"):
        metafunc.parametrize("browser", ["chromium", "firefox"], indirect=True)
    elif metafunc.definition.get_closest_marker("any_browser"):
        firefox = pytest.param("firefox", marks=pytest.mark.every_look)
        metafunc.parametrize("browser", ["chromium", firefox], indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all of these tests on one loop with one browser, whose start would take most of each test's time.

    Tests in Firefox come last, so that few of the processes start it.
    """
    one_loop = pytest.mark.asyncio(loop_scope="session")
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.browser)
            if pytest_asyncio.is_async_test(item):
                item.add_marker(one_loop, append=False)
    items.sort(key=runs_in_firefox)


def runs_in_firefox(item: pytest.Item) -> bool:
    call = getattr(item, "callspec", None)
    return call is not None and call.params.get("browser") == "firefox"


@pytest.fixture(scope="session", autouse=True)
def fresh_assets() -> None:
    """Fail if the servers would deliver files that were built from other sources. Skipped without Node."""
    if (ROOT / "node_modules/esbuild").is_dir():
        check = subprocess.run(["node", "scripts/assets.js", "--check"], cwd=ROOT, capture_output=True, text=True)
        assert check.returncode == 0, check.stderr


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def model() -> AsyncIterator[WireServer]:
    """The model's server. It answers while a test uses the fixture `server`."""
    async with WireServer() as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def servers(
    prepared: Path, tmp_path_factory: pytest.TempPathFactory, model: WireServer
) -> AsyncIterator[SharedServers]:
    servers = SharedServers(prepared, tmp_path_factory.mktemp("servers"), model)
    yield servers
    await servers.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    """The server of this test process, freshly reset. Tests of other settings override this fixture."""
    async with servers.use(CONFIG, LEASE_SECONDS="2") as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browsers() -> AsyncIterator[Browsers]:
    async with async_playwright() as playwright:
        browsers = Browsers(playwright)
        yield browsers
        await browsers.close()


@pytest_asyncio.fixture(loop_scope="session")
async def browser(browsers: Browsers, request: pytest.FixtureRequest) -> AsyncIterator[Browser]:
    """A browser without a signed-in user."""
    browser = await browsers.get(getattr(request, "param", "chromium"))
    yield browser
    for context in browser.contexts:
        for page in context.pages:
            await page.unroute_all(behavior="ignoreErrors")  # else routes in flight fail the next test
        await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def ana(browser: Browser, server: Server) -> AsyncIterator[Person]:
    """The administrator, signed in by the printed link, in an empty session."""
    person = await Person.in_a_session(browser, server.link)
    yield person
    person.check_console()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def showcase(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Showcase]:
    """A server with the rows of tests/support/showcase.py, for tests that only read."""
    async with open_showcase(copy(prepared, tmp_path_factory.mktemp("house") / "data")) as showcase:
        yield showcase
