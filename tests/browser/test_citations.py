"""Sources of an answer on the page, and calls that wait because text from elsewhere could have asked for them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from agents.messages import Json
from agents.sandbox import probe
from tests.browser.conftest import CONFIG
from tests.browser.person import Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, reply
from tests.browser.test_questions import asking, press
from tests.browser.test_retry import PHONE
from tests.support.search_service import TIDES, search_service
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire.server import WireServer

SEARCH = ("web_search", {"query": "tides"})
COMMAND: tuple[str, Json] = ("bash", {"command": "echo sent"})
ANSWER = "High water is at noon [1], low water `at[1]` six [9]."


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    """A server whose agent searches the web, and runs commands with a network and without being asked."""
    async with search_service() as service:
        service.answer = {"results": [TIDES]}
        more = (
            'tools = ["web_search", "bash"]\n[agents.assistant.approval]\nallow = []\n'
            f'[search]\ntype = "searxng"\nbase_url = "{service.url}"\ninternal_hosts = ["127.0.0.1"]\n'
        )
        async with servers.use(CONFIG + more, LEASE_SECONDS="2", SANDBOX_NETWORK="1") as server:
            yield server


async def answered(person: Person, model: WireServer) -> Locator:
    """Let the agent search and answer; return the answer."""
    model.script(asking(SEARCH), reply(ANSWER))
    await person.say("When is high water?")
    await expect(person.answers.last).to_contain_text("High water is at noon")
    await person.sees_state("idle")
    return person.page.locator(".message.assistant").last


async def test_numbers_of_sources_are_chips_with_a_card(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-14: by pointer and keyboard, for others and after a reload; what cites nothing stays text."""
    bo = await invited(ana, browser, "Bo")
    await answered(ana, model)
    for person in (ana, bo):
        answer = person.page.locator(".message.assistant").last
        chip = answer.get_by_role("link", name="Source 1: Tide tables")
        await expect(chip).to_have_count(1)
        await expect(answer.locator(".cite")).to_have_text(["[1]", "[9]"])
        await expect(answer.locator(".cite[role]")).to_have_text(["[1]"])
        await expect(answer.get_by_role("list", name="Sources").get_by_role("listitem")).to_have_count(1)
    await chip.hover()
    card = bo.page.locator(".source-card")
    await expect(card).to_contain_text("Tide tables")
    await expect(card).to_contain_text("https://tides.example/today")
    await bo.page.mouse.move(0, 0)
    await expect(card).to_have_count(0)
    await bo.page.reload()
    chip = bo.page.get_by_role("link", name="Source 1: Tide tables")
    await chip.focus()
    await expect(bo.page.locator(".source-card")).to_be_visible()
    assert await violations(bo.page) == []
    await bo.page.keyboard.press("Escape")
    await expect(bo.page.locator(".source-card")).to_have_count(0)
    await expect(bo.page.locator(".tool-origin")).to_have_text("From the web")
    bo.complain()


async def test_enter_opens_the_source(ana: Person, model: WireServer) -> None:
    await answered(ana, model)
    await ana.page.context.route("https://tides.example/**", lambda route: route.fulfill(body="Tides"))
    await ana.page.get_by_role("link", name="Source 1: Tide tables").focus()
    async with ana.page.context.expect_page() as opened:
        await ana.page.keyboard.press("Enter")
    page = await opened.value
    await page.wait_for_url("https://tides.example/today")
    await page.close()


async def test_a_touch_shows_the_card(ana: Person, model: WireServer, browser: Browser) -> None:
    """On a phone there is no pointer to hover with: the card has the link."""
    await answered(ana, model)
    context = await browser.new_context(
        viewport=PHONE, is_mobile=True, has_touch=True, storage_state=await ana.page.context.storage_state()
    )
    page = await context.new_page()
    await page.goto(ana.page.url)
    await page.get_by_role("link", name="Source 1: Tide tables").tap()
    await expect(page.locator(".source-card a")).to_have_attribute("href", "https://tides.example/today")
    box = await page.locator(".source-card").bounding_box()
    assert box
    assert (box["x"] >= 0, box["x"] + box["width"] <= PHONE["width"]) == (True, True)
    await context.close()


@pytest.mark.skipif(bool(probe.problem()), reason="needs a sandbox")
async def test_a_command_that_could_send_out_what_was_read_waits_with_its_reason(
    ana: Person, model: WireServer
) -> None:
    """UI-15: the card says where the text is from. After the answer the command runs."""
    model.script(asking(SEARCH), asking(COMMAND), reply("Done"))
    await ana.say("Search, then run it")
    await ana.sees_state("waiting")
    question = ana.page.locator(".question")
    await expect(question.locator(".question-reason")).to_contain_text("the conversation has text from web search")
    assert await violations(ana.page) == []
    await press(question, "Allow once")
    await expect(ana.answers.last).to_contain_text("Done")
    ana.complain()
