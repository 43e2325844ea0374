"""The context in the panel, in real browsers: pages, inclusion by mouse and key, and updates for another user."""

from __future__ import annotations

import asyncio

from playwright.async_api import Browser, Locator, Route, expect

from tests.browser.person import Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, reply
from tests.support.server import Server, run_in
from tests.wire.server import WireServer

FILL = """
from chat.models import ChatMessage, Session
session = Session.objects.get()
ChatMessage.objects.bulk_create(
    ChatMessage(session=session, sequence=n, revision=n, role="user", text=f"Number {n}") for n in range(1, 401)
)
Session.objects.update(revision=400)
"""


def fill(server: Server) -> None:
    """Add 400 messages to the only session. A page that has missed so many reloads instead of getting each."""
    run_in(server, FILL)


def context(person: Person) -> Locator:
    return person.page.get_by_role("tabpanel", name="Context")


def blocks(person: Person) -> Locator:
    return context(person).locator(".context-list > li")


def switch(person: Person, words: str) -> Locator:
    return context(person).get_by_role("checkbox", name=f"Include “{words}")


async def opened(person: Person) -> None:
    await person.page.keyboard.press("Control+.")
    await person.page.get_by_role("tab", name="Context").click()
    await expect(context(person)).to_contain_text("System prompt")


async def talk(person: Person, model: WireServer, *turns: tuple[str, str]) -> None:
    for number, (asked, answer) in enumerate(turns, 1):
        model.script(reply(answer))
        await person.say(asked)
        await expect(person.answers).to_have_count(number)
        await person.sees_state("idle")


async def test_panel_follows_soon_after_a_late_response(ana: Person, model: WireServer) -> None:
    """CTX-01, LIVE-01: after a response that took minutes, the panel does not wait many times as long for the next."""
    page, responds = ana.page, asyncio.Event()
    await page.clock.install()
    await talk(ana, model, ("First question", "First answer"))
    await opened(ana)

    async def wait(route: Route) -> None:
        await responds.wait()
        await route.continue_()

    await page.route("**/context?*", wait)
    model.script(reply("Second answer"))
    async with page.expect_request("**/context?*"):
        await ana.say("Second question")
    await expect(ana.answers).to_have_count(2)
    await ana.sees_state("idle")
    await page.clock.fast_forward(600_000)
    responds.set()
    await expect(blocks(ana)).to_have_count(4)
    model.script(reply("Third answer"))
    await ana.say("Third question")
    await expect(ana.answers).to_have_count(3)
    await ana.sees_state("idle")
    await page.clock.fast_forward(10_000)
    await expect(blocks(ana)).to_have_count(6)


async def test_excluded_messages_are_not_sent(ana: Person, browser: Browser, model: WireServer) -> None:
    """MSG-09, CTX-01, UI-11: switches work by mouse and key; the request matches the panel, and both panels follow."""
    await talk(ana, model, ("First question", "First answer"), ("Second question", "Second answer"))
    bo = await invited(ana, browser, "Bo")
    await opened(ana)
    await opened(bo)
    await expect(blocks(ana)).to_have_count(4)
    await switch(ana, "First answer").uncheck()
    await expect(switch(bo, "First answer")).not_to_be_checked()
    await expect(context(bo)).to_contain_text("Excluded by Admin")
    await expect(context(bo)).to_contain_text("1 message is excluded.")
    await switch(bo, "First question").focus()
    await bo.page.keyboard.press("Space")
    await expect(switch(ana, "First question")).not_to_be_checked()
    await expect(switch(bo, "First question")).to_be_focused()
    assert await violations(ana.page) == []
    model.script(reply("Third answer"))
    await ana.say("Third question")
    await expect(blocks(ana)).to_have_count(6)
    sent = [message["content"] for message in model.requests[-1].body["messages"] if message["role"] != "system"]
    assert sent == ["Second question", "Second answer", "Third question"]
    included = context(ana).locator("li:not(.unsent) .context-text")
    await expect(included).to_have_text([*sent, "Third answer"])
    bo.check_console()


async def test_all_before_a_message_is_excluded_and_included(ana: Person, model: WireServer) -> None:
    """MSG-09, UI-11: a message's menu in the panel excludes all before it. Undo keeps those excluded earlier."""
    await talk(ana, model, ("One", "Eins"), ("Two", "Zwei"))
    await opened(ana)
    await switch(ana, "One").uncheck()
    await expect(context(ana)).to_contain_text("1 message is excluded.")
    more = blocks(ana).get_by_role("button", name="More: Zwei", exact=True)
    await more.press("Enter")
    await ana.page.get_by_role("menuitem", name="Exclude all messages before this one").click()
    await expect(context(ana)).to_contain_text("3 messages are excluded.")
    await expect(ana.page.locator("#messages article.excluded")).to_have_count(3)
    await ana.page.get_by_role("button", name="Undo").click()
    await expect(context(ana)).to_contain_text("1 message is excluded.")
    await expect(switch(ana, "One")).not_to_be_checked()
    await more.click()
    await ana.page.get_by_role("menuitem", name="Go to the message").click()
    await expect(ana.answers.last).to_be_focused()


async def test_undo_survives_a_change_of_hundreds(ana: Person, server: Server) -> None:
    """MSG-09, MSG-11, LIVE-01: after a change of hundreds of messages, the page updates in place and keeps Undo."""
    address = ana.page.url
    await ana.page.goto("about:blank")
    await asyncio.to_thread(fill, server)
    await ana.page.goto(address)
    await ana.sees_connection("Connected")
    await opened(ana)
    await ana.page.evaluate("document.body.dataset.same = 'page'")
    await blocks(ana).last.get_by_role("button", name="More").click()
    await ana.page.get_by_role("menuitem", name="Exclude all messages before this one").click()
    await expect(context(ana)).to_contain_text("399 messages are excluded.")
    shown = ana.page.locator("#messages article:not(.excluded)")
    await expect(shown).to_contain_text(["Number 400"])
    await expect(ana.page.locator("#messages .excluded-mark").first).to_have_text("hidden from the model · ")
    await ana.page.get_by_role("button", name="Undo").click()
    await expect(context(ana)).not_to_contain_text("excluded.")
    await expect(ana.page.locator("#messages :is(.excluded, .excluded-mark)")).to_have_count(0)
    await expect(ana.page.locator("body[data-same]")).to_be_attached()


async def test_request_of_an_answer_is_compared_with_the_present(ana: Person, model: WireServer) -> None:
    """MSG-11, UI-11: the answer's details lead to its request by keyboard; edits appear in the open comparison."""
    await talk(ana, model, ("What is it?", "It is this."))
    await ana.answers.first.press("d")
    await ana.page.get_by_role("button", name="View request").press("Enter")
    await expect(context(ana)).to_contain_text("Nothing has changed since.")
    await expect(ana.page.get_by_role("tab", name="Context")).to_be_focused()
    await expect(blocks(ana)).to_have_count(1)
    await ana.page.locator("#messages article.user").press("e")
    await ana.page.get_by_role("textbox", name="Edit message").fill("What was it?")
    await ana.page.get_by_role("button", name="Save", exact=True).click()
    await expect(context(ana)).to_contain_text("1 message is edited")
    await expect(blocks(ana).first).to_contain_text("What is it?")
    await blocks(ana).first.get_by_text("Current version").click()
    await expect(blocks(ana).first).to_contain_text("What was it?")
    assert await violations(ana.page) == []
    await ana.page.get_by_role("button", name="Next request").click()
    await expect(blocks(ana)).to_have_count(2)


async def test_arrow_keys_change_the_tabs_of_the_panel(ana: Person, model: WireServer) -> None:
    """UI-11: arrow keys change the tabs, and at 360 px the panel closes to show the message."""
    await talk(ana, model, ("Hi", "Ho"))
    await ana.page.set_viewport_size({"width": 360, "height": 700})
    await ana.page.keyboard.press("Control+.")
    await ana.page.get_by_role("tab", name="Session").focus()
    await ana.page.keyboard.press("ArrowRight")
    await expect(ana.page.get_by_role("tab", name="Context")).to_be_focused()
    await expect(blocks(ana)).to_have_count(2)
    await expect(ana.page.get_by_role("tabpanel", name="Session")).to_be_hidden()
    assert await violations(ana.page) == []
    await blocks(ana).first.get_by_role("button", name="More").click()
    await ana.page.get_by_role("menuitem", name="Go to the message").click()
    await expect(ana.page.locator("#panel")).to_be_hidden()
    await expect(ana.page.locator("#messages article.user")).to_be_focused()
