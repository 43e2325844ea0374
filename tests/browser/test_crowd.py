"""LIVE-01: whatever users, agents and the network do, open pages show what a reload shows.

A failure prints the actions. PARLEY_CROWD_SEEDS sets the number of random runs.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence
from random import Random
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from tests.browser.conftest import CONFIG
from tests.browser.crowd import CONNECTED, Crowd, OneServer, Servers, Viewer
from tests.browser.crowd_accounts import gather
from tests.browser.crowd_beside import act
from tests.browser.improvised import Improvised
from tests.browser.page_state import differences, prepare_like, state_of
from tests.browser.person import Person
from tests.browser.test_page import fill
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire.server import WireServer

TOOLS = """
tools = [
    "form", "selection", "confirmation", "plan_review", "feedback", "action_selection", "calculator", "web_fetch",
    "agent__helper",
]
[agents.assistant.approval]
ask = ["web_fetch"]
[agents.helper]
title = "Helper"
model = "wire/wire-large"
tools = ["calculator", "confirmation"]
[agents.critic]
title = "Critic"
model = "wire/wire-small"
tools = []
"""
SEEDS = range(1, 1 + int(os.environ.get("PARLEY_CROWD_SEEDS", "12")))
ROUNDS, ACTIONS = 4, 25
# Seconds within which a page must become equal to a fresh page, and after which the fresh page is reloaded.
SETTLES, RELOADS = 12.0, 5.0


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    async with servers.use(CONFIG + TOOLS, LEASE_SECONDS="2") as server:
        yield server


async def compare(viewer: Viewer) -> list[str]:
    """Return the differences between a page and a fresh page after SETTLES seconds, or earlier if there are none."""
    began = time.monotonic()
    if problem := await viewer.problem():
        return [problem]
    fresh = await viewer.page.context.new_page()
    try:
        await load(fresh, viewer.address)
        while found := await differing(viewer.page, fresh):
            if time.monotonic() > began + SETTLES:
                break
            await asyncio.sleep(0.5)
            if time.monotonic() > began + RELOADS:
                await load(fresh, viewer.address)
        return found
    finally:
        await fresh.close()


async def load(page: Page, address: str) -> None:
    await page.goto(address)
    await page.wait_for_function(CONNECTED)
    await page.wait_for_timeout(300)


async def differing(live: Page, fresh: Page) -> list[str]:
    await prepare_like(fresh, await state_of(live))
    await fresh.wait_for_timeout(250)
    return differences(await state_of(live), await state_of(fresh))


async def live_a_while(crowd: Crowd) -> None:
    """Let all users act at random, then end all failures and wait until no agent works."""
    for _ in range(crowd.chance.randrange(ACTIONS // 2, ACTIONS + 1)):
        await act(crowd)
        await asyncio.sleep(crowd.chance.choice([0, 0, 0.05, 0.2, 0.6]))
    for viewer in crowd.viewers:
        viewer.line.release()
        viewer.line.restore()
    await crowd.rest()


@pytest.mark.every_look
@pytest.mark.parametrize("seed", SEEDS)
async def test_open_pages_show_what_a_reload_shows(
    ana: Person, browser: Browser, server: Server, model: WireServer, seed: int
) -> None:
    """LIVE-01: messages, queue, header, panel, session list, status and buttons are equal, without console errors."""
    if seed % 3 == 0:
        await asyncio.to_thread(fill, server)
    await live_together(ana, browser, model, OneServer(server), [server.address], seed)


async def live_together(
    ana: Person, browser: Browser, model: WireServer, servers: Servers, origins: Sequence[str], seed: int
) -> None:
    """Let a crowd live for some rounds, and compare each of its pages with a fresh one after each round."""
    model.improvise = Improvised(Random(seed + 1))
    ana.ignore_refusals()
    session = urlsplit(ana.page.url).path.split("/")[2]
    viewers = await gather(ana, browser, origins)
    crowd = Crowd(servers, viewers, Random(seed), session)
    if seed % 2:
        await crowd.command(viewers[0], type="add_agent", agent="helper")
    for number in range(ROUNDS):
        crowd.note(f"--- {number}")
        await live_a_while(crowd)
        for viewer in viewers:
            found = await compare(viewer) + viewer.reports
            assert not found, "\n".join([*crowd.log, f"--- {viewer.name}:", *found])
        if number + 1 == ROUNDS or crowd.chance.random() < 0.6:
            await crowd.command(viewers[0], type="cancel")
