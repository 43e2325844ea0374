"""LIVE-01: rows that are rendered again, and content that changes while a script loads or a page is offline.

What scripts have set on the page's elements stays or is set again, and no typed text is lost.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, Locator, Route, expect

from tests.browser.conftest import CONFIG
from tests.browser.crowd import Line
from tests.browser.person import Person
from tests.browser.test_chat import invited, reply
from tests.browser.test_early import expect_stored
from tests.browser.test_home import field as first_message
from tests.browser.test_messages import talk
from tests.browser.test_notifications import BROWSER
from tests.browser.test_questions import FORM, GUARDED, PLAN, SUM, asked, card, owner_and_admin, press
from tests.browser.test_retry import PHONE
from tests.browser.test_session_list import home
from tests.browser.test_uploads import NOTES, attach, chips
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire.server import WireServer

TOOLS = '\ntools = ["plan_review", "form"]\n'
SCRIPT = re.compile(r"/session-questions[^/]*\.js$")


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    async with servers.use(CONFIG + TOOLS, LEASE_SECONDS="2") as server:
        yield server


async def edit(person: Person, message: Locator, text: str) -> None:
    await message.focus()
    await person.page.keyboard.press("e")
    field = person.page.get_by_role("textbox", name="Edit message")
    await field.fill(text)
    await field.press("Control+Enter")
    await expect(field).to_have_count(0)


async def test_diagram_follows_each_edit(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-11: another user's page draws a diagram again after each edit of its code."""
    bo = await invited(ana, browser, "Bo")
    await talk(ana, model, "Here:\n\n```mermaid\ngraph TD\n  A[First] --> B\n```")
    drawn = bo.answers.last.locator("iframe").content_frame.locator("svg")
    await expect(drawn).to_contain_text("First")
    await edit(ana, ana.answers.last, "Here:\n\n```mermaid\ngraph TD\n  A[Second] --> B\n```")
    await expect(drawn).to_contain_text("Second")
    await edit(ana, ana.answers.last, "Here:\n\n```mermaid\ngraph TD\n  A[Third] --> B\n```")
    await expect(drawn).to_contain_text("Third")


async def test_code_that_was_a_diagram_has_no_pressed_buttons(ana: Person, model: WireServer) -> None:
    """UI-11: the buttons of code that replaces a diagram do not have the state of the buttons of the diagram."""
    await talk(ana, model, "Here:\n\n```mermaid\ngraph TD\n  A[First] --> B\n```")
    await expect(ana.answers.last.get_by_role("button", name="Diagram", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    await edit(ana, ana.answers.last, "Here:\n\n```python\nx = 1\n```")
    await expect(ana.answers.last.locator(".code-lang")).to_have_text("Python")
    await expect(ana.answers.last.locator("[aria-pressed]")).to_have_count(0)


async def test_open_markdown_follows_edits(ana: Person, model: WireServer, browser: Browser) -> None:
    """MSG-12: the open Markdown of a message is updated when the message changes."""
    bo = await invited(ana, browser, "Bo")
    await talk(ana, model, "One **word**")
    await bo.answers.last.focus()
    await bo.page.keyboard.press("s")
    source = bo.answers.last.locator("> .source")
    await expect(source).to_have_text("One **word**")
    await edit(ana, ana.answers.last, "Two *words*")
    await expect(source).to_have_text("Two *words*")


async def test_expanded_message_stays_expanded(ana: Person, model: WireServer, browser: Browser) -> None:
    """LIVE-01: the button that expands a long message does not return when another user edits the message."""
    bo = await invited(ana, browser, "Bo")
    model.script(reply("Fine"))
    await ana.say("Line\n" * 200)
    expand = bo.page.get_by_role("button", name="Show all")
    await expand.click()
    await expect(expand).to_have_count(0)
    await expect(ana.answers).to_contain_text(["Fine"])
    await ana.sees_state("idle")
    await edit(ana, ana.messages.first, "Word\n" * 200)
    await expect(bo.messages.first.locator(".edited")).to_be_visible()
    await expect(expand).to_have_count(0)


async def test_typed_answer_is_kept_if_its_card_is_removed(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-12: the text in a card goes to the composer if the card was removed while the page was offline."""
    bo = await invited(ana, browser, "Bo")
    line = Line()
    await bo.page.route_web_socket("**/ws/**", line.lead)
    await bo.page.reload()
    await bo.sees_connection("Connected")
    await asked(ana, model, PLAN)
    plan = card(bo, "The plan")
    await press(plan, "Edit")
    await line.cut()
    await plan.get_by_label("Plan (Markdown)").fill("1. Do that")
    await ana.stop.click()
    await ana.sees_state("idle")
    await ana.page.locator("article.tool_group").focus()
    await ana.page.keyboard.press("Delete")
    await expect(ana.page.locator("article.tool_group")).to_have_count(0)
    line.restore()
    await bo.sees_connection("Connected")
    await expect(bo.page.locator("article.tool_group")).to_have_count(0)
    await expect(bo.composer).to_have_value("1. Do that")


async def test_edit_of_a_delivered_message_is_not_reopened(ana: Person, model: WireServer) -> None:
    """RUN-06: the unsaved edit of a delivered message is in the composer, and a reload does not open it again."""
    gate = asyncio.Event()
    model.script(reply("Wor", gate=gate, rest=("king",)), reply("Done"))
    await ana.say("Go")
    await expect(ana.answers).to_have_count(1)
    await ana.say("Then this")
    await ana.page.get_by_role("button", name="Edit the queued message", exact=True).click()
    await ana.queue.locator("textarea").fill("Then that")
    gate.set()
    await expect(ana.composer).to_have_value("Then that")
    await ana.sees_state("idle")
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await expect(ana.composer).to_have_value("Then that")
    await expect(ana.page.locator(".edit")).to_have_count(0)


async def test_tab_of_the_panel_that_cannot_be_loaded_says_so(ana: Person, model: WireServer) -> None:
    """CTX-01, LIVE-04: if the request for an earlier answer cannot be loaded, the tab does not show the next request.

    An update that failed leaves the content as it is.
    """
    ana.ignore_refusals()
    await talk(ana, model, "First")
    await ana.page.keyboard.press("Control+.")
    await ana.page.get_by_role("tab", name="Context").click()
    tab = ana.page.get_by_role("tabpanel", name="Context")
    await expect(tab).to_contain_text("Question 1")
    await ana.page.route("**/context?*", lambda route: route.fulfill(status=404))
    model.script(reply("Second"))
    async with ana.page.expect_response("**/context?*"):
        await ana.say("Another question")
    await ana.sees_state("idle")
    await expect(tab).to_contain_text("Question 1")
    await ana.answers.first.focus()
    await ana.page.keyboard.press("d")
    await ana.page.locator("[data-action=context-past]").click()
    await expect(tab).not_to_contain_text("Question 1")
    await ana.page.unroute("**/context?*")
    await tab.get_by_role("button", name="Try again").click()
    await expect(tab).to_contain_text("Question 1")
    await expect(tab.locator("[data-action=context-now]")).to_be_visible()


async def test_text_of_a_streaming_message_stays_selectable(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-11: on a phone, "Select text" of a message stays in effect when the message is finished."""
    state = await ana.page.context.storage_state()
    context = await browser.new_context(storage_state=state, viewport=PHONE, has_touch=True, is_mobile=True)
    phone = Person(await context.new_page())
    await phone.page.goto(ana.page.url)
    await phone.sees_connection("Connected")
    gate = asyncio.Event()
    model.script(reply("Wor", gate=gate, rest=("king",)))
    await ana.say("Go")
    answer = phone.answers.first
    await answer.focus()
    await phone.page.keyboard.press("m")
    await phone.page.get_by_role("menuitem", name="Select text").click()
    await expect(answer.locator(".bubble")).not_to_have_css("user-select", "none")
    gate.set()
    await expect(answer).to_have_attribute("data-status", "complete")
    await expect(answer.locator(".bubble")).not_to_have_css("user-select", "none")
    phone.check_console()


async def test_home_page_restored_by_back_creates_another_session(ana: Person, model: WireServer) -> None:
    """UI-09: a message on a home page that Back has restored is not sent to the session that its file has created."""
    model.script(reply("One"), reply("Two"))
    await home(ana)
    await attach(ana, NOTES)
    await expect(chips(ana)).to_have_attribute("data-state", "ready")
    await ana.page.route("**/sessions/*/", lambda route: route.fulfill(status=204))  # the page stays
    addresses = []
    for text in ("First", "Second"):
        await first_message(ana).fill(text)
        async with ana.page.expect_response("**/sessions/new") as created:
            await first_message(ana).press("Enter")
        addresses.append((await (await created.value).json())["address"])
        await ana.page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")  # like Back
    assert len(set(addresses)) == 2


async def test_call_for_others_causes_no_notification(
    servers: SharedServers, model: WireServer, browser: Browser
) -> None:
    """UI-20: a user who may not approve a call gets no notification and sees no button, also while the script loads."""
    async with servers.use(CONFIG + GUARDED) as server:
        ana, _bo = await owner_and_admin(browser, server)
        await ana.page.add_init_script(BROWSER)
        await ana.page.reload()
        await ana.sees_connection("Connected")
        await ana.page.evaluate("document.documentElement.dataset.notify = 'yes'")
        gate = asyncio.Event()

        async def late(route: Route) -> None:
            await gate.wait()
            await route.continue_()

        await ana.page.route(SCRIPT, late)
        await asked(ana, model, SUM, then="42")
        question = card(ana, "wants to run calculator")
        await expect(question).to_be_visible()
        await expect(question.get_by_role("button", name="Approve")).to_be_hidden()
        gate.set()
        assert await ana.page.evaluate("shown") == []


async def test_message_restored_while_offline_has_its_name(ana: Person, model: WireServer, browser: Browser) -> None:
    """LIVE-01, UI-05: a message restored while a page was offline is below the message before it, with its name."""
    bo = await invited(ana, browser, "Bo", automatic=True)
    line = Line()
    await bo.page.route_web_socket("**/ws/**", line.lead)
    await bo.page.reload()
    await bo.sees_connection("Connected")
    await bo.say("From Bo")
    await expect(ana.messages).to_have_count(1)
    for number, text in enumerate(("One", "Two"), 2):
        await ana.say(text)
        await expect(bo.messages).to_have_count(number)
    await ana.messages.nth(1).focus()
    await ana.page.keyboard.press("Delete")
    await expect(bo.messages).to_have_count(2)
    await line.cut()
    await ana.page.get_by_role("button", name="Undo").click()
    await expect(ana.messages).to_have_count(3)
    line.restore()
    await expect(bo.messages).to_have_count(3)
    await expect(bo.messages.nth(1)).to_contain_text("One")
    await expect(bo.messages.nth(1).locator(".who")).to_be_visible()
    await expect(bo.messages.nth(2).locator(".who")).to_be_hidden()


async def test_card_follows_the_access_that_another_page_changes(
    servers: SharedServers, model: WireServer, browser: Browser
) -> None:
    """UI-20: a card that no one can approve follows a change of the access on another page of its owner."""
    async with servers.use(CONFIG + GUARDED) as server:
        ana, _bo = await owner_and_admin(browser, server)
        await ana.begin()
        await asked(ana, model, SUM, then="42")
        stuck = card(ana, "wants to run calculator").get_by_text("No one in this session can approve this.")
        await expect(stuck).to_be_visible()
        other = Person(await ana.page.context.new_page())
        await other.page.goto(ana.page.url)
        await other.page.get_by_role("button", name="Share", exact=True).click()
        dialog = other.page.get_by_role("dialog", name="Share session")
        await dialog.locator(".candidate", has_text="Bo").click()
        await dialog.locator(".adding").get_by_label("Role").select_option("editor")
        await dialog.get_by_role("button", name="Add", exact=True).click()
        await expect(other.page.locator("#main")).to_have_attribute("data-approvers", re.compile('"admin": 1'))
        await expect(stuck).to_be_hidden()


async def test_names_are_fetched_again_after_a_failed_request(ana: Person, browser: Browser) -> None:
    """UI-09, LIVE-04: after a request has failed, the next "@" offers the people, and "/model" knows the models."""
    await invited(ana, browser, "Bo")
    ana.ignore_refusals()
    for pattern, text, option in (("**/people", "@B", "Bo"), ("**/models*", "/model wire-s", "wire-small")):
        await ana.page.route(pattern, lambda route: route.fulfill(status=404), times=1)
        async with ana.page.expect_response(pattern):
            await ana.composer.press_sequentially(text)
        await ana.composer.press("Backspace")
        await expect(ana.page.get_by_role("option", name=option)).to_be_visible()
        await ana.composer.fill("")


async def test_answer_typed_before_the_script_is_loaded_is_kept(ana: Person, model: WireServer) -> None:
    """UI-12: what the user types while the script for questions loads replaces a draft and survives a reload."""
    await asked(ana, model, FORM)
    name = card(ana, "A few things").get_by_label("Name")
    await name.fill("Before")
    loads = asyncio.Event()

    async def late(route: Route) -> None:
        await loads.wait()
        await route.continue_()

    await ana.page.route(SCRIPT, late)
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await expect(name).to_have_value("")
    await name.fill("Early")
    loads.set()
    await expect_stored(ana, "Early")
    await ana.page.reload()
    await expect(name).to_have_value("Early")
