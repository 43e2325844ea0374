"""The first start without a key and a configuration: the tools that the demo agent shows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import expect

from tests.browser.person import Person, shows_briefly
from tests.support.server import Server
from tests.support.shared_server import SharedServers

# Returns whether the page shows the beginning of a file that the agent still writes.
GROWING = """() => {
  const shown = document.querySelector(".tool.writing")?.textContent ?? "";
  return shown.includes("Moving to the new server") && !shown.includes("what you did not expect");
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    async with servers.use("") as server:
        yield server


async def test_demo_shows_tools_without_a_key(ana: Person) -> None:
    """UI-12, UI-14: the demo agent shows a form, an approval, the shell, a file that grows, and an MCP server."""
    page = ana.page
    await ana.say("ask")
    form = page.get_by_role("group", name="Order lunch")
    await form.get_by_label("How many people?").fill("4")
    await form.get_by_role("button", name="Order").click()
    choice = page.get_by_role("group", name="Who pays?")
    await choice.get_by_role("radio", name="The team").check()
    await choice.get_by_role("button", name="Send answer").click()
    await expect(ana.answers.last).to_contain_text('["team"]')
    await ana.sees_state("idle")

    await ana.say("bash echo one; echo two")
    await page.get_by_role("button", name="Allow once").click()
    await expect(page.locator(".terminal")).to_contain_text("one\ntwo")
    await ana.sees_state("idle")

    growing = asyncio.create_task(shows_briefly(page, GROWING))
    await ana.say("draft plan.md")
    await growing
    await expect(page.locator(".tool_group").last).to_contain_text("+12")
    await ana.sees_state("idle")

    await ana.say("mcp")
    await expect(page.locator(".tool-files img")).to_have_js_property("complete", True)
    await expect(ana.answers.last).to_contain_text("Counted to 5.")
    await ana.sees_state("idle")
