"""UI-12, UI-20: a card that several users have open."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, Route, WebSocketRoute, expect

from tests.browser.conftest import CONFIG
from tests.browser.person import Person
from tests.browser.test_chat import invited, make_viewer, reply
from tests.browser.test_messages import talk
from tests.browser.test_questions import ACTIONS, SUM, asked, asking, card
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire.server import WireServer

THREE_APPROVALS = """
tools = ["calculator", "action_selection"]
[agents.assistant.approval]
ask = [{{ rule = "calculator", approvals = 3 }}]
"""
# A text with a carriage return is edited as JSON.
AS_JSON = ("calculator", {"expression": "6*7\r"})
CALL = "wire-large wants to run calculator"


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    """A server whose calculator needs the approvals of three users."""
    async with servers.use(CONFIG + THREE_APPROVALS) as server:
        yield server


async def test_card_is_busy_until_it_shows_the_own_answer(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-20: an approval by another user does not enable the buttons while this user's own approval is on its way."""
    bo = await invited(ana, browser, "Bo")
    held: list[str | bytes] = []
    sockets: list[WebSocketRoute] = []

    async def hold_answers(route: WebSocketRoute) -> None:
        server = route.connect_to_server()
        sockets.append(server)
        route.on_message(lambda frame: held.append(frame) if '"answer"' in str(frame) else server.send(frame))

    await ana.page.route_web_socket("**/ws/**", hold_answers)
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await asked(ana, model, SUM)
    form = card(ana, CALL).locator("form")
    await form.get_by_role("button", name="Approve").click()
    await expect(form).to_have_attribute("aria-busy", "true")
    await card(bo, CALL).get_by_role("button", name="Approve").click()
    await expect(card(ana, CALL)).to_contain_text("Bo approved this")
    await expect(form).to_have_attribute("aria-busy", "true")
    sockets[-1].send(held.pop())
    await expect(card(ana, CALL).get_by_text("You approved this.")).to_be_visible()
    await expect(form).not_to_have_attribute("aria-busy", "true")


async def test_error_stays_with_its_field(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-12: a screen reader still reads the error at its field after another user has approved the call."""
    bo = await invited(ana, browser, "Bo")
    await asked(ana, model, AS_JSON)
    question = card(ana, CALL)
    await question.get_by_role("button", name="Edit arguments").click()
    field = question.get_by_label("Arguments as JSON")
    await field.fill("{")
    await field.press("Control+Enter")
    await expect(question.get_by_role("alert")).to_contain_text("This isn’t valid JSON")
    await card(bo, CALL).get_by_role("button", name="Approve").click()
    await expect(question).to_contain_text("Bo approved this")
    await expect(field).to_have_accessible_description(re.compile("This isn’t valid JSON"))
    await expect(field).to_have_attribute("aria-invalid", "true")
    await field.fill('{"expression": "6*8"}')
    await field.press("Control+Enter")
    await expect(question.get_by_text("You approved this.")).to_be_visible()
    await expect(question.get_by_role("alert")).to_have_count(0)


async def test_early_answer_goes_to_the_question(ana: Person, model: WireServer) -> None:
    """UI-12: a click on "Answer" while the script for questions still loads moves the focus to the card."""
    arrived: list[Route] = []
    await ana.page.route("**/session-questions*.js", lambda route: arrived.append(route))
    model.script(asking(SUM), reply("42"))
    await ana.say("Go on")
    button = ana.page.locator("#status").get_by_role("button", name="Answer")
    async with ana.page.expect_request("**/session-questions*.js"):
        await button.click()
    await expect(card(ana, CALL)).not_to_be_focused()
    await arrived.pop().continue_()
    await expect(card(ana, CALL)).to_be_focused()


async def test_button_to_the_end_offers_no_question_that_is_in_view(ana: Person, model: WireServer) -> None:
    """UI-12: "Go to question" is offered only while the question is further below."""
    await talk(ana, model, "\n\n".join(["Well."] * 40))
    await asked(ana, model, *[SUM] * 6)
    question = card(ana, CALL).first
    await ana.page.keyboard.press("Alt+ArrowDown")
    await expect(question).to_be_focused()
    await expect(ana.page.get_by_role("button", name="Go to question")).to_be_hidden()
    await ana.page.locator("#log").evaluate("log => (log.scrollTop = 0)")
    await ana.page.get_by_role("button", name="Go to question").click()
    await expect(question).to_be_in_viewport()  # the first of six cards, not the end
    await expect(question.locator("xpath=ancestor::article")).to_be_focused()


async def test_viewer_reads_the_choices_without_buttons_that_do_nothing(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """UI-12: the choices of the next step are disabled for viewers, so that the Tab key skips them."""
    bo = await invited(ana, browser, "Bo")
    await make_viewer(ana, bo)
    await asked(ana, model, ACTIONS)
    theirs = card(bo, "What next?").get_by_role("button", name="Apples")
    await expect(theirs).to_be_visible()
    await expect(theirs).to_be_disabled()
    await card(ana, "What next?").get_by_role("button", name="Apples").click()
    await expect(card(bo, "What next?")).to_contain_text("Admin answered")
