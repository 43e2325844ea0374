"""Agents of staff in a real browser: created in the admin, chosen on the home page, and shown in their session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urljoin

import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.conftest import CONFIG
from tests.browser.person import Person
from tests.browser.test_chat import invited, reply
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire.server import WireServer


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    async with servers.use(CONFIG, TITLES="model") as server:
        yield server


async def test_agent_of_the_admin_answers_and_names_its_session(
    model: WireServer, server: Server, browser: Browser
) -> None:
    """ADM-01, UI-11: the home page offers the new agent, which answers by its prompt. All users see the title that its
    model generates."""
    gate = asyncio.Event()
    model.script(reply("Roses are red."), reply("“Red ", gate=gate, rest=("roses”",)), reply("Violets are blue."))
    ana = await Person.enter(browser, server.link)
    await ana.page.goto(urljoin(server.address, "/admin/chat/agentpreset/add/"))
    await ana.page.get_by_label("Name:").fill("poet")
    await ana.page.get_by_label("Title:").fill("Poet")
    await ana.page.get_by_label("Model:").fill("wire/none-such")
    await ana.page.get_by_label("System prompt:").fill("Answer in rhymes.")
    await ana.page.get_by_role("button", name="Save", exact=True).click()
    await expect(ana.page.get_by_text("Choose one of: wire/wire-large, wire/wire-small")).to_be_visible()
    await ana.page.get_by_label("Model:").fill("wire/wire-small")
    await ana.page.get_by_role("button", name="Save", exact=True).click()
    await expect(ana.page.locator("#result_list").get_by_role("link", name="Poet", exact=True)).to_be_visible()

    await ana.page.goto(server.address)
    await ana.page.get_by_role("button", name="Agent:").click()
    await ana.page.get_by_role("option", name="Poet").click()
    await ana.page.get_by_label("First message").fill("What color are roses?")
    await ana.page.get_by_role("button", name="Send").click()
    await expect(ana.answers.first).to_contain_text("Roses are red.")
    bo = await invited(ana, browser, "Bo")
    for person in (ana, bo):
        await expect(person.page.locator("[data-part=title]").first).to_contain_text("What color are roses?")
    gate.set()
    for person in (ana, bo):
        await expect(person.page.locator("[data-part=title]").first).to_contain_text("Red roses")
        await expect(person.page.locator(".session-title").first).to_have_text("Red roses")
        person.check_console()
    asked, named = (request.body for request in model.requests)
    assert "Answer in rhymes." in str(asked["messages"][0])
    assert ("You name conversations" in str(named["messages"][0]), named["model"]) == (True, "wire-small")
