"""RUN-15: a server is killed during each kind of wait and started again, and open pages continue."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.conftest import CONFIG
from tests.browser.person import Person
from tests.browser.test_asking import WHEN, ask
from tests.browser.test_chat import invited, reply
from tests.browser.test_questions import CONFIRMATION, SUM, asked, asking, card
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire.server import WireServer

SERVER = Path(__file__).parents[1] / "agents/mcp/server.py"
MORE = f"""
tools = ["calculator", "tests__*", "agent__helper"]
[agents.assistant.approval]
allow = ["tests__*"]
ask = [{{{{ rule = "calculator", approvals = 2 }}}}]
[agents.helper]
title = "Helper"
model = "wire/wire-large"
tools = ["confirmation"]
[mcp.tests]
command = ["{sys.executable}", "{SERVER}"]
sandbox = false
"""
DELEGATE = ("agent__helper", {"task": "Clean up"})


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    async with servers.use(CONFIG + MORE, LEASE_SECONDS="2") as server:
        yield server


async def crash(server: Server) -> None:
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)


async def test_kill_between_two_approvals(ana: Person, model: WireServer, server: Server, browser: Browser) -> None:
    """UI-12, UI-20: a server that is killed between two approvals keeps the first one.

    After the second one, the call runs once.
    """
    bo = await invited(ana, browser, "Bo")
    await asked(ana, model, SUM, then="42 it is")
    mine, theirs = (card(person, "wants to run calculator") for person in (ana, bo))
    await mine.get_by_role("button", name="Approve").click()
    await expect(theirs).to_contain_text("1 more approval needed")
    await crash(server)
    for person in (ana, bo):
        await person.sees_connection("Connected")
        await person.sees_state("waiting")
    await expect(theirs).to_contain_text("Admin approved this")
    await theirs.get_by_role("button", name="Approve").click()
    await expect(ana.answers.last).to_contain_text("42 it is")
    await expect(ana.page.locator(".decision")).to_contain_text("Approved by Admin, Bo")
    assert [each["content"] for each in model.requests[-1].body["messages"] if each["role"] == "tool"] == ["42"]
    for person in (ana, bo):
        person.reports.clear()  # the connection that was refused in the meantime


async def test_kill_while_an_mcp_server_asks(ana: Person, model: WireServer, server: Server) -> None:
    """UI-18: if Parley is killed while an MCP server asks, the call is reported as lost and is not repeated.

    Its question can no longer be answered.
    """
    await ask(ana, model, "book", "It may be booked.")
    await expect(card(ana, WHEN)).to_be_visible()
    await crash(server)
    await expect(ana.answers.last).to_contain_text("It may be booked.")
    await ana.sees_state("idle")
    await expect(card(ana, WHEN).get_by_role("button")).to_have_count(0)
    results = [each["content"] for each in model.requests[-1].body["messages"] if each["role"] == "tool"]
    assert len(results) == 1
    assert "the server stopped while it ran" in results[0]
    ana.reports.clear()


async def test_kill_while_another_agent_waits_for_users(ana: Person, model: WireServer, server: Server) -> None:
    """RUN-18: after a kill, both sessions still wait. The answer in the other agent's session lets both continue."""
    model.script(asking(DELEGATE), asking(CONFIRMATION))
    await ana.say("Go")
    link = ana.page.get_by_role("link", name="Open session Helper")
    await expect(ana.page.get_by_role("region", name="Waiting for you (1)")).to_contain_text("Clean up")
    await crash(server)
    await ana.sees_connection("Connected")
    session = ana.page.url
    await link.click()
    await ana.sees_state("waiting")
    model.script(reply("All is clean."), reply("Helper has cleaned up."))
    await card(ana, "Delete the table?").get_by_role("button", name="Delete it").click()
    await expect(ana.answers.last).to_contain_text("All is clean.")
    await ana.page.goto(session)
    await expect(ana.answers.last).to_contain_text("Helper has cleaned up.")
    result = [each["content"] for each in model.requests[-1].body["messages"] if each["role"] == "tool"]
    assert len(result) == 1
    assert "All is clean." in json.dumps(result)
    ana.reports.clear()


async def test_kill_while_a_summary_is_written(ana: Person, model: WireServer, server: Server) -> None:
    """CTX-07: a kill while a summary is written leaves the messages unchanged, and the summary is written again."""
    for number in ("One", "Two", "Three"):
        model.script(reply(f"Re: {number}"))
        await ana.say(number)
        await expect(ana.answers.last).to_contain_text(f"Re: {number}")
        await ana.sees_state("idle")
    model.script(reply("They ", gate=asyncio.Event()), reply("They counted."))
    await ana.say("/compact")
    await expect(ana.page.locator("#status")).to_contain_text("Summarizing")
    await model.received(4)
    await crash(server)
    await expect(ana.page.get_by_role("article", name="Summary")).to_have_text(re.compile("They counted."))
    await ana.sees_state("idle")
    await ana.page.get_by_role("button", name="Show messages").click()
    for number in ("One", "Two", "Three"):
        await expect(ana.answers.filter(has_text=f"Re: {number}")).to_have_count(1)
    ana.reports.clear()
