"""Fixtures for tests in a real Chromium against a real Parley, whose model is a server that speaks OpenAI's format."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.browser.person import Person
from tests.support.server import ForkedServer, Server
from tests.wire.server import WireServer

HERE = Path(__file__).parent
CHROMIUM = shutil.which("chromium-headless-shell")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One loop for all of these tests, as there is one Chromium: its start would be most of each one's time."""
    one_loop = pytest.mark.asyncio(loop_scope="session")
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.browser)
            if pytest_asyncio.is_async_test(item):
                item.add_marker(one_loop, append=False)


@pytest_asyncio.fixture(loop_scope="session")
async def model() -> AsyncIterator[WireServer]:
    async with WireServer() as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def server(tmp_path: Path, data: Path, model: WireServer) -> AsyncIterator[Server]:
    config = tmp_path / "parley.toml"
    config.write_text(CONFIG.format(url=model.openai_url))
    server = ForkedServer(data, PARLEY_CONFIG=str(config), LEASE_SECONDS="2")
    await asyncio.to_thread(server.start)
    yield server
    await asyncio.to_thread(server.stop)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def browser(chromium: Browser) -> AsyncIterator[Browser]:
    """A browser in which nobody is yet."""
    yield chromium
    for context in chromium.contexts:
        await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def ana(browser: Browser, server: Server) -> AsyncIterator[Person]:
    """The administrator, signed in by the printed link, in a session in which nothing has been said."""
    person = await Person.in_a_session(browser, server.link)
    yield person
    person.complain()
