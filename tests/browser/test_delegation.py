"""An agent that asks another one, in real browsers: two users follow it from the card into its session and back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from tests.browser.conftest import CONFIG
from tests.browser.person import Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, reply
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire import openai
from tests.wire.script import Reply
from tests.wire.server import WireServer

TEAM = """
tools = ["agent__helper"]
[agents.helper]
title = "Helper"
model = "wire/wire-large"
tools = []
"""


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    async with servers.use(CONFIG + TEAM, TITLES="words") as server:
        yield server


def asks(task: str) -> Reply:
    call = openai.tool_call(0, "call_a", "agent__helper", json.dumps({"task": task}))
    return Reply(openai.sse(openai.role(), *call, openai.finish("tool_calls")))


def card(person: Person) -> Locator:
    return person.messages.filter(has=person.page.locator(".tool-session"))


async def test_the_work_of_another_agent_is_followed_and_stopped(
    ana: Person, browser: Browser, model: WireServer, server: Server
) -> None:
    """RUN-18: both open its session from the card; one stops it, and the agent that asked continues on both pages."""
    gate = asyncio.Event()
    model.script(asks("Find the key"), reply("I look ", gate=gate, rest=("everywhere.",)), reply("We stopped looking."))
    bo = await invited(ana, browser, "Bo")
    await ana.say("Where is the key?")
    for person in (ana, bo):
        await expect(card(person)).to_contain_text("Helper")
        await expect(card(person)).to_contain_text("Find the key")
        await person.sees_state("tool_calling")
    assert await violations(ana.page) == []
    listed = bo.page.locator(".rail-row", has_text="Find the key")
    await expect(listed).to_contain_text("Sub-agent of")
    for person in (ana, bo):
        await card(person).get_by_role("link", name="Open session Helper").press("Enter")
        await expect(person.answers.last).to_contain_text("I look")
        await expect(person.page.locator(".origin")).to_contain_text("Sub-agent of Where is the key?")
    await expect(ana.page.get_by_role("button", name="People", exact=True)).to_be_visible()
    assert await violations(bo.page) == []
    await ana.stop.click()
    await expect(bo.page.locator("#messages")).to_contain_text("Stopped by Admin")
    for person in (ana, bo):
        await person.page.locator(".origin a").click()
        await expect(person.answers.last).to_contain_text("We stopped looking.")
        await expect(card(person)).to_contain_text("failed")
        await expect(card(person).locator(".tool-session")).to_contain_text("tokens")
        await expect(person.page.locator(".rail-row", has_text="Find the key")).to_have_count(0)
    ana.complain()
    bo.complain()
