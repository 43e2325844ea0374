"""LIVE-01: whatever people, agents and the network do, open pages show what a reload shows.

A failure prints what was done.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from random import Random
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page

from agents.messages import Json
from tests.browser.conftest import CONFIG
from tests.browser.crowd import CONNECTED, Crowd, Viewer
from tests.browser.crowd_beside import act
from tests.browser.improvised import Improvised
from tests.browser.page_state import differences, prepare_like, state_of
from tests.browser.person import RETRIES, WINDOW, Person
from tests.browser.test_chat import invited
from tests.browser.test_page import fill
from tests.browser.test_retry import PHONE
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
"""
SEEDS = range(1, 13)
ROUNDS, ACTIONS = 4, 25
ON_A_PHONE: Json = {**WINDOW, "viewport": PHONE, "has_touch": True, "is_mobile": True}
# Seconds within which a page becomes what a fresh one is, and after which the fresh one is loaded again.
SETTLES, RELOADS = 12.0, 5.0


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    async with servers.use(CONFIG + TOOLS, LEASE_SECONDS="2") as server:
        yield server


async def gather(ana: Person, browser: Browser, server: Server) -> list[Viewer]:
    """Open the session on two pages of its owner, on an editor's phone, and on the Chinese page of a viewer."""
    bo = await invited(ana, browser, "Bo", member=True)
    await ana.page.reload()
    cy = await invited(ana, browser, "Cy")
    await give_role(ana, cy, "viewer")
    people = [("ana", ana, WINDOW), ("bo", bo, ON_A_PHONE), ("cy", cy, WINDOW)]
    contexts = {name: await again(browser, person, look) for name, person, look in people}
    await contexts["cy"].add_cookies([{"name": "django_language", "value": "zh-hans", "url": server.address}])
    viewers = [Viewer(name, await contexts[name].new_page()) for name in ("ana", "ana", "bo", "cy")]
    viewers[1].name = "ana, again"
    for viewer in viewers:
        await viewer.begin(ana.page.url)
    return viewers


async def give_role(host: Person, person: Person, role: str) -> None:
    number = await person.page.locator("main").get_attribute("data-viewer-id")
    members = host.page.url.replace("/sessions/", "/api/sessions/") + f"members/{number}"
    headers = {"X-CSRFToken": await host.token()}
    assert (await host.page.request.put(members, data={"role": role}, headers=headers, max_retries=RETRIES)).ok


async def again(browser: Browser, person: Person, look: Json) -> BrowserContext:
    """Return a new context of the same login: its pages are routed before they load."""
    return await browser.new_context(**{**look, "storage_state": await person.page.context.storage_state()})


async def compare(viewer: Viewer, address: str) -> list[str]:
    """Return how a page differs from a fresh one, once they are the same or a time is over."""
    began = time.monotonic()
    await viewer.connected()
    fresh = await viewer.page.context.new_page()
    try:
        await load(fresh, address)
        while found := await differing(viewer.page, fresh):
            if time.monotonic() > began + SETTLES:
                break
            await asyncio.sleep(0.5)
            if time.monotonic() > began + RELOADS:
                await load(fresh, address)
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
    """Let everyone do this and that, then end all trouble and wait until the agents rest."""
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
    """LIVE-01: messages, queue, header, panel, list of sessions, status, buttons; and no page complains."""
    model.improvise = Improvised(Random(seed + 1))
    ana.forgive()
    if seed % 3 == 0:
        await asyncio.to_thread(fill, server)
    address = ana.page.url
    viewers = await gather(ana, browser, server)
    crowd = Crowd(server, viewers, Random(seed), urlsplit(address).path.split("/")[2])
    for number in range(ROUNDS):
        crowd.note(f"--- {number}")
        await live_a_while(crowd)
        for viewer in viewers:
            found = await compare(viewer, address) + viewer.complaints
            assert not found, "\n".join([*crowd.log, f"--- {viewer.name}:", *found])
        if number + 1 == ROUNDS or crowd.chance.random() < 0.6:
            await crowd.command(viewers[0], type="cancel")
