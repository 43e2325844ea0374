"""Fixtures for tests in a real Chromium against a real Parley, whose model is a server that speaks OpenAI's format."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.browser.person import Person
from tests.support.server import Server
from tests.wire.server import WireServer

CHROMIUM = shutil.which("chromium")
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
models = {{ wire-large = {{ context_window = 1000 }}, wire-small = {{}} }}
[agents.assistant]
model = "wire/wire-large"
"""


@pytest_asyncio.fixture
async def model() -> AsyncIterator[WireServer]:
    async with WireServer() as server:
        yield server


@pytest_asyncio.fixture
async def server(tmp_path: Path, model: WireServer) -> AsyncIterator[Server]:
    config = tmp_path / "parley.toml"
    config.write_text(CONFIG.format(url=model.openai_url))
    server = Server(tmp_path / "data", PARLEY_CONFIG=str(config), LEASE_SECONDS="2")
    await asyncio.to_thread(server.start)
    yield server
    await asyncio.to_thread(server.stop)


@pytest_asyncio.fixture
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        await browser.close()


@pytest_asyncio.fixture
async def ana(browser: Browser, server: Server) -> AsyncIterator[Person]:
    """The administrator, signed in by the printed link, in a fresh session."""
    person = await Person.enter(browser, server.link)
    yield person
    person.complain()
