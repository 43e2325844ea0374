"""Sources of an answer on the page, and calls that need an approval because foreign text may have caused them."""

from __future__ import annotations

import asyncio
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
from tests.browser.test_patches import edit
from tests.browser.test_questions import asking, press
from tests.browser.test_retry import PHONE
from tests.support.search_service import TIDES, search_service
from tests.support.server import Server, run_in
from tests.support.shared_server import SharedServers
from tests.wire.server import WireServer

SEARCH = ("web_search", {"query": "tides"})
COMMAND: tuple[str, Json] = ("bash", {"command": "echo sent"})
ANSWER = "High water is at noon [1], low water `at[1]` six [9]."


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    """A server whose agent searches the web, and runs commands with network access and without approval."""
    async with search_service() as service:
        service.answer = {"results": [TIDES]}
        more = (
            'tools = ["web_search", "bash"]\n[agents.assistant.approval]\nallow = []\n'
            f'[search]\ntype = "searxng"\nbase_url = "{service.url}"\ninternal_hosts = ["127.0.0.1"]\n'
        )
        async with servers.use(CONFIG + more, LEASE_SECONDS="2", SANDBOX_NETWORK="1") as server:
            yield server


async def answered(person: Person, model: WireServer, text: str = ANSWER) -> Locator:
    """Let the agent search and answer, and return the answer."""
    model.script(asking(SEARCH), reply(text))
    await person.say("When is high water?")
    await expect(person.answers.last).to_contain_text("High water is at noon")
    await person.sees_state("idle")
    return person.page.locator(".message.assistant").last


async def test_citations_are_chips_with_a_card(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-14: a cited source's number has a card, by pointer and keyboard, for all users and after a reload.

    A number without a source stays text.
    """
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
    bo.check_console()


async def test_each_number_in_brackets_is_a_chip(ana: Person, model: WireServer) -> None:
    """UI-14: one pair of brackets can cite several sources, which are listed. The text does not change."""
    answer = await answered(ana, model, "High water is at noon [1, 9].")
    await expect(answer.locator(".cite[role]")).to_have_text(["1"])
    await expect(answer.get_by_role("link", name="Source 1: Tide tables")).to_have_count(1)
    await expect(answer.get_by_role("list", name="Sources").get_by_role("listitem")).to_have_count(1)
    await expect(answer.locator(".prose")).to_have_text("High water is at noon [1, 9].")


async def test_enter_opens_the_source(ana: Person, model: WireServer) -> None:
    await answered(ana, model)
    await ana.page.context.route("https://tides.example/**", lambda route: route.fulfill(body="Tides"))
    await ana.page.get_by_role("link", name="Source 1: Tide tables").focus()
    async with ana.page.context.expect_page() as opened:
        await ana.page.keyboard.press("Enter")
    page = await opened.value
    await page.wait_for_url("https://tides.example/today")
    await page.close()


async def test_focused_citation_stays_when_its_message_changes(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """UI-14, LIVE-01: a new version of an answer neither takes the focus from a chip nor shows it as text."""
    bo = await invited(ana, browser, "Bo")
    await answered(ana, model)
    chip = ana.page.get_by_role("link", name="Source 1: Tide tables")
    await chip.focus()
    await ana.page.evaluate("""() => {
        window.framesWithoutChip = 0;
        const look = () => {
            if (!document.querySelector(".cite[role]")) window.framesWithoutChip += 1;
            requestAnimationFrame(look);
        };
        look();
    }""")
    await edit(bo, bo.answers.last, f"{ANSWER} Then it rises.")
    await expect(ana.answers.last).to_contain_text("Then it rises.")
    await expect(chip).to_be_focused()
    assert await ana.page.evaluate("framesWithoutChip") == 0


async def test_touch_shows_the_card_of_a_citation(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-14: on a phone, a touch shows the card with its link, because a touch cannot hover.

    Clicks have no type of the pointer, as in Safari before 18.4.
    """
    await answered(ana, model)
    context = await browser.new_context(
        viewport=PHONE, is_mobile=True, has_touch=True, storage_state=await ana.page.context.storage_state()
    )
    await context.add_init_script(
        "addEventListener('click', (event) => Object.defineProperty(event, 'pointerType', {value: 'mouse'}), true)"
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
async def test_command_after_foreign_text_needs_an_approval(ana: Person, model: WireServer) -> None:
    """UI-15: a command that could send out what the agent has read waits for an approval.

    Its card names the source of the text. When it is allowed, the command runs.
    """
    model.script(asking(SEARCH), asking(COMMAND), reply("Done"))
    await ana.say("Search, then run it")
    await ana.sees_state("waiting")
    question = ana.page.locator(".question")
    await expect(question.locator(".question-reason")).to_contain_text("the conversation has text from web search")
    assert await violations(ana.page) == []
    await press(question, "Allow once")
    await expect(ana.answers.last).to_contain_text("Done")
    ana.check_console()


MORE = """
from chat.models import ChatMessage, Session, User
session, user = Session.objects.get(), User.objects.get()
last = ChatMessage.objects.order_by("-sequence").values_list("sequence", flat=True)[0]
ChatMessage.objects.bulk_create(
    ChatMessage(session=session, sequence=last + n, revision=session.revision + n, role="user", sender="Admin",
                user=user, text="More")
    for n in range(1, 181)
)
Session.objects.update(revision=session.revision + 180)
"""
DIAGRAM = "High water is at noon [1].\n\n```mermaid\ngraph TD; A-->B\n```\n"


async def test_rare_modules_load_with_their_first_content(ana: Person, model: WireServer, server: Server) -> None:
    """UI-14: a page without citations and diagrams loads no scripts for them.

    An answer or an older part that contains one loads them.
    """
    loaded: list[str] = []
    ana.page.on("request", lambda request: loaded.append(request.url.rpartition("/")[2]))
    rare = {"session-citations.js", "session-diagrams.js"}
    chip = ana.page.get_by_role("link", name="Source 1: Tide tables")
    drawn = ana.page.locator("iframe.diagram")
    await ana.page.reload()
    await ana.sees_connection("Connected")
    assert rare.isdisjoint(loaded)
    model.script(asking(SEARCH), reply(DIAGRAM))
    await ana.say("When is high water?")
    await expect(chip).to_have_count(1)
    await expect(drawn).to_have_count(1)
    assert rare <= set(loaded)
    await ana.sees_state("idle")
    await asyncio.to_thread(run_in, server, MORE)
    loaded.clear()
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await expect(ana.messages.last).to_contain_text("More")
    assert rare.isdisjoint(loaded)
    await ana.page.locator("#log").focus()
    await ana.page.keyboard.press("Control+Home")
    await expect(chip).to_have_count(1)
    await expect(drawn).to_have_count(1)
    ana.check_console()


async def test_citations_stay_chips_after_each_edit(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-14: the chips of an answer work for other users after each edit of its text."""
    bo = await invited(ana, browser, "Bo")
    answer = await answered(ana, model)
    chip = bo.page.get_by_role("link", name="Source 1: Tide tables")
    await expect(chip).to_have_count(1)
    for word in ("one", "two"):
        await answer.focus()
        await ana.page.keyboard.press("e")
        field = ana.page.get_by_role("textbox", name="Edit message")
        await field.fill(ANSWER.replace("noon", word))
        await field.press("Control+Enter")
        await expect(field).to_have_count(0)
        await expect(bo.answers.last).to_contain_text(word)
        await expect(bo.answers.last.locator(".edited")).to_be_visible()
        await expect(chip).to_have_count(1)
