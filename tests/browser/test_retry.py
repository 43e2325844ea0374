"""Retry with Undo, Stop with a queue, and edits of other users' messages, in real browsers with other users."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Browser, Locator, ViewportSize, expect

from tests.browser.crowd import Line
from tests.browser.delays import Delay
from tests.browser.person import WINDOW, Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, reply
from tests.browser.test_messages import PRESS_TWICE, choose, talk
from tests.wire import openai
from tests.wire.script import Cut, Reply
from tests.wire.server import WireServer

TOOLS = (*openai.tool_call(0, "call_1", "calculator", '{"expression": "6*7"}'), openai.finish("tool_calls"))
PHONE: ViewportSize = {"width": 390, "height": 844}


def button(person: Person, name: str) -> Locator:
    return person.page.get_by_role("button", name=name, exact=True)


def texts(*words: str) -> list[re.Pattern[str]]:
    return [re.compile(word) for word in words]


@pytest.mark.both_browsers
async def test_retry_in_the_middle_asks_and_can_be_undone(ana: Person, model: WireServer, browser: Browser) -> None:
    """RUN-12, RUN-06: the dialog says how many messages are removed, and that another user wrote some.

    The key R does nothing above later messages. The other user gets a notice of the removed message. A fork removes
    nothing. Undo stops the agent and restores everything. Only a retry of the last answer does not ask.
    """
    await talk(ana, model, "First", "Second")
    bo = await invited(ana, browser, "Bo")
    model.script(reply("Third"))
    await bo.say("Mine")
    await expect(ana.answers).to_have_text(texts("First", "Second", "Third"))
    await ana.sees_state("idle")
    first, dialog = ana.answers.first, ana.page.get_by_role("dialog", name="Retry from here?")
    await first.focus()
    await first.press("r")
    await expect(dialog).to_have_count(0)
    await choose(ana, first, "Retry from here")
    await expect(dialog).to_contain_text("5 messages will be removed. Another person wrote some of them.")
    await expect(dialog.get_by_role("button", name="Fork instead")).to_be_focused()
    assert await violations(ana.page) == []
    await ana.page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await ana.messages.first.focus()
    await ana.messages.first.press("e")
    await ana.page.get_by_role("textbox", name="Edit message").fill("Otherwise asked")
    await button(ana, "Save & regenerate").click()
    question = ana.page.get_by_role("dialog", name="Save and regenerate?")
    await expect(question.get_by_role("button", name="Save & regenerate")).to_be_visible()
    await question.get_by_role("button", name="Cancel").click()
    await expect(bo.messages.first).to_contain_text("Question 1")
    await button(ana, "Cancel").click()

    gate = asyncio.Event()
    model.script(reply("Instead", gate=gate))
    await choose(ana, first, "Retry from here")
    await dialog.get_by_role("button", name="Retry from here").click()
    await expect(bo.answers).to_have_text(texts("Instead"))
    await expect(bo.page.locator("#toasts")).to_contain_text("One of your messages was removed.")
    await button(bo, "Show").click()
    await expect(bo.page.get_by_role("dialog", name="Removed messages")).to_contain_text("Mine")
    await bo.page.keyboard.press("Escape")
    await bo.say("Wait for me")
    await expect(ana.queue).to_have_count(1)
    await expect(ana.page.locator("#toasts")).to_contain_text("5 messages removed")
    toast = await ana.page.locator("#toasts .toast").last.bounding_box()
    dock = await ana.page.locator(".dock").bounding_box()
    assert toast
    assert dock
    assert dock["x"] < toast["x"]
    assert toast["y"] + toast["height"] <= dock["y"]
    await button(ana, "Undo").click()
    for person in (ana, bo):
        await expect(person.answers).to_have_text(texts("First", "Second", "Third"))
        await expect(person.queue).to_have_count(1)
        await person.sees_state("idle")
    before = await ana.transcript()
    await ana.page.reload()
    assert await ana.transcript() == before

    gate = asyncio.Event()
    model.script(reply("Better", gate=gate))
    await ana.composer.focus()
    await ana.page.keyboard.press("Shift+Tab")
    await ana.page.locator(".resting").get_by_role("button", name="Retry from here").press("Enter")
    await expect(ana.page.locator("#messages article:focus")).to_be_visible()
    gate.set()
    await expect(bo.answers).to_have_text(texts("First", "Second", "Better"))
    await bo.sees_state("idle")
    await button(ana, "Undo").click()
    await expect(bo.answers).to_have_text(texts("First", "Second", "Third"))
    model.script(reply("Elsewhere"))
    original = ana.page.url
    await choose(ana, ana.answers.nth(1), "Retry from here")
    await dialog.get_by_role("button", name="Fork instead").click()
    await ana.page.wait_for_url(lambda url: url != original)
    await expect(ana.answers).to_have_text(texts("First", "Elsewhere"))
    await expect(bo.answers).to_have_text(texts("First", "Second", "Third"))
    bo.check_console()


async def test_pressing_twice_retries_or_asks_once(ana: Person, model: WireServer) -> None:
    """RUN-12: a double click on a button opens one dialog. A retry of the last answer is not refused."""
    await talk(ana, model, "First", "Second")
    dialogs, press = ana.page.locator("dialog[open]"), "button => { button.click(); button.click(); }"
    await ana.messages.first.focus()
    await ana.messages.first.press("e")
    await button(ana, "Save & regenerate").evaluate(press)
    await expect(dialogs).to_have_count(1)
    await ana.page.keyboard.press("Escape")
    await expect(dialogs).to_have_count(0)
    await button(ana, "Cancel").click()
    gate = asyncio.Event()
    model.script(reply("Better", gate=gate))
    await ana.answers.last.evaluate(PRESS_TWICE, "r")
    await expect(ana.page.locator("#toasts")).to_contain_text("The previous answer was replaced")
    await expect(ana.page.get_by_role("alert")).to_have_text("")
    gate.set()
    await expect(ana.answers).to_have_text(texts("First", "Better"))


async def test_undo_of_save_and_regenerate_restores_both(ana: Person, model: WireServer, browser: Browser) -> None:
    """RUN-12: Undo of "Save & regenerate" restores question and answer on all pages. An editor can switch back."""
    await talk(ana, model, "First")
    bo = await invited(ana, browser, "Bo")
    model.script(reply("Second"))
    await ana.messages.first.focus()
    await ana.messages.first.press("e")
    await ana.page.get_by_role("textbox", name="Edit message").fill("Otherwise asked")
    await button(ana, "Save & regenerate").click()
    for person in (ana, bo):
        await expect(person.answers).to_have_text(texts("Second"))
        await expect(person.messages.first).to_contain_text("Otherwise asked")
        await person.sees_state("idle")
    await button(ana, "Undo").click()
    for person in (ana, bo):
        await expect(person.answers).to_have_text(texts("First"))
        await expect(person.messages.first).to_contain_text("Question 1")
        await expect(person.messages.first).not_to_contain_text("edited")
    await bo.page.get_by_role("button", name="Next version").click()
    for person in (ana, bo):
        await expect(person.answers).to_have_text(texts("Second"))
        await expect(person.messages.first).to_contain_text("Otherwise asked")
    bo.check_console()


async def test_stop_holds_the_queue_and_the_answer_can_be_continued(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """RUN-06, RUN-08, MSG-11: pages name who stopped. An editor can send another user's held message, not change it.

    The owner can remove it. The answer is continued, its tools can be run again, and on a phone the composer does not
    take the focus.
    """
    bo = await invited(ana, browser, "Bo")
    model.script(reply("So far", gate=asyncio.Event()))
    await ana.say("Go")
    await expect(bo.answers.first).to_contain_text("So far")
    for person, text in ((ana, "Ana's"), (bo, "Bo's"), (bo, "Bo's other")):
        await person.say(text)
        await expect(person.queue.filter(has_text=text)).to_have_attribute("id", re.compile("m_"))
    await bo.stop.click()
    for person in (ana, bo):
        await expect(person.page.locator(".marker")).to_contain_text("Stopped by Bo")
        await expect(person.page.get_by_text("These messages are on hold")).to_be_visible()
    assert await violations(ana.page) == []
    theirs = bo.queue.filter(has_text="Ana's")
    await bo.page.get_by_role("button", name="3 messages are queued").click()
    await expect(theirs.get_by_role("button", name="Send now")).to_be_visible()
    await expect(theirs.get_by_role("button", name=re.compile("Edit|Remove"))).to_have_count(0)
    await ana.page.get_by_role("button", name="3 messages are queued").click()
    await ana.queue.filter(has_text="Bo's other").get_by_role("button", name="Remove").click()
    await expect(bo.page.locator("#toasts")).to_contain_text("Your queued message was removed")
    await button(bo, "Restore text").click()
    await expect(bo.composer).to_have_value("Bo's other")

    model.script(Reply(openai.sse(*openai.text("and on."), *TOOLS)), reply("42"))
    await button(ana, "Continue").click()
    for person in (ana, bo):
        await expect(person.answers).to_have_text(texts("So far", "and on", "42"))
        await person.sees_state("idle")
    await expect(ana.queue).to_have_count(2)
    model.script(reply("Forty-two"))
    await choose(ana, ana.page.locator("article.tool_group"), "Run tools again")
    await expect(bo.answers).to_have_text(texts("So far", "and on", "Forty-two"))
    await bo.sees_state("idle")
    await expect(bo.page.locator("article.tool_group")).to_have_count(1)
    model.script(reply("Heard"), reply("Heard, too"))
    await theirs.get_by_role("button", name="Send now").click()
    await expect(ana.answers.last).to_have_text(re.compile("Heard"))
    await ana.sees_state("idle")
    await expect(ana.queue).to_have_count(1)

    state = await ana.page.context.storage_state()
    context = await browser.new_context(storage_state=state, viewport=PHONE, has_touch=True, is_mobile=True)
    phone = Person(await context.new_page())
    await phone.page.goto(ana.page.url)
    await phone.sees_connection("Connected")
    assert await phone.page.evaluate("document.activeElement.tagName") == "BODY"
    await phone.queue.get_by_role("button", name="Send now").tap()
    await expect(phone.answers.last).to_contain_text("Heard, too")
    await phone.sees_state("idle")
    assert await phone.page.evaluate("document.activeElement.tagName") != "TEXTAREA"
    for person in (bo, phone):
        person.check_console()


async def test_others_can_only_suggest_edits(ana: Person, model: WireServer, browser: Browser) -> None:
    """MSG-11: an editor cannot change a message in another user's name, only suggest an edit.

    The difference is shown at the message on both pages. Once accepted, the message names who suggested it. An answer
    names who edited it. A notice that the agent uses a message disappears with the agent's answer.
    """
    await talk(ana, model, "An answer")
    bo = await invited(ana, browser, "Bo")
    mine, theirs = ana.messages.first, bo.messages.first
    await theirs.focus()
    await theirs.press("Delete")
    await expect(ana.messages).to_have_count(2)
    await theirs.press("e")
    field = bo.page.get_by_role("textbox", name="Suggest an edit")
    await field.fill("A better question")
    await expect(bo.page.locator("[data-name=keys]")).to_have_text("Ctrl+Enter to send · Esc to cancel")
    await button(bo, "Send suggestion").click()
    await expect(field).to_have_count(0)
    await ana.page.set_viewport_size({"width": 1200, "height": 400})
    await mine.get_by_role("button", name="1 suggested edit").press("Enter")
    await expect(mine.locator(".suggestion")).to_contain_text("Bo suggests this edit")
    await expect(mine.locator(".difference")).to_be_focused()
    await expect(mine.locator(".difference")).to_be_in_viewport(ratio=1)
    await ana.page.set_viewport_size(WINDOW["viewport"])
    await expect(mine.locator(".suggestion ins").first).to_be_visible()
    assert await violations(ana.page) == []
    await theirs.get_by_role("button", name="1 suggested edit").click()
    await expect(theirs.get_by_role("button", name="Withdraw suggestion")).to_be_visible()
    await expect(theirs.get_by_role("button", name="Accept")).to_have_count(0)
    await mine.get_by_role("button", name="Accept").click()
    for message in (mine, theirs):
        await expect(message.locator(".plain")).to_have_text("A better question")
        await expect(message.locator(".meta")).to_contain_text("edited, suggested by Bo")
        await expect(message.locator(".suggestion")).to_have_count(0)
    await mine.get_by_role("button", name="edited").click()
    await expect(ana.page.get_by_role("dialog")).to_contain_text(re.compile("Edited.*suggested by Bo", re.S))
    await ana.page.keyboard.press("Escape")

    gate = asyncio.Event()
    model.script(reply("Busy", gate=gate))
    await bo.answers.first.focus()
    await bo.answers.first.press("e")
    await ana.say("Go")
    await expect(bo.answers.last).to_contain_text("Busy")
    await bo.page.get_by_role("textbox", name="Edit message").fill("Bo's words")
    await bo.page.keyboard.press("Control+Enter")
    await expect(ana.answers.first.locator(".meta")).to_contain_text("edited by Bo")
    question = ana.messages.filter(has_text="Go")
    await question.focus()
    await question.press("e")
    await ana.page.get_by_role("textbox", name="Edit message").fill("Gone")
    await ana.page.get_by_role("button", name="Save", exact=True).click()
    notice = ana.page.locator(".notice")
    await expect(notice).to_contain_text("The agent is using this message.")
    gate.set()
    await ana.sees_state("idle")
    await expect(notice).to_have_count(0)
    bo.check_console()


async def test_late_response_does_not_replace_newer_suggestions(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """LIVE-01: a late response does not replace newer suggested edits, and does not open them again."""
    await talk(ana, model, "An answer")
    bo = await invited(ana, browser, "Bo")
    mine, theirs = ana.messages.first, bo.messages.first

    async def suggest(text: str) -> None:
        await theirs.press("e")
        await bo.page.get_by_role("textbox", name="Suggest an edit").fill(text)
        await button(bo, "Send suggestion").click()

    await suggest("First words")
    opener = mine.locator("[data-action=suggestions]")
    await opener.click()
    await expect(mine.locator(".suggestions")).to_contain_text("First words")
    late = await Delay.next_response(ana.page, "**/suggestions?*")
    await suggest("Second words")
    await late.read()
    async with ana.page.expect_response("**/suggestions?*"):
        await suggest("Third words")
    await expect(mine.locator(".suggestions")).to_contain_text("Third words")
    await late.release()
    await expect(mine.locator(".suggestions")).to_contain_text("Third words")

    late = await Delay.next_response(ana.page, "**/suggestions?*")
    await suggest("Fourth words")
    await late.read()
    await opener.click()
    await late.release()
    await expect(mine.locator(".suggestions")).to_have_count(0)
    ana.check_console()
    bo.check_console()


@pytest.mark.any_browser
async def test_versions_of_an_answer_are_switched_for_all_users(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """RUN-12: the versions of an answer are switched by button, key and command, on all pages.

    Later messages belong to their version: switching removes them, after a dialog, and switching back restores them.
    """
    await talk(ana, model, "First")
    bo = await invited(ana, browser, "Bo")
    for answer in ("Second", "Third"):
        model.script(reply(answer))
        await ana.answers.first.focus()
        await ana.answers.first.press("r")
        for person in (ana, bo):
            await expect(person.answers).to_have_text(texts(answer))
            await person.sees_state("idle")
    undo = ana.page.locator("#toasts .toast", has_text="The previous answer was replaced")
    await undo.last.hover()  # keeps the toast open
    numbers = [person.page.locator(".attempts") for person in (ana, bo)]
    for number in numbers:
        await expect(number).to_have_text("3/3")
        await expect(number.get_by_role("button", name="Next version")).to_be_disabled()
    await bo.page.bring_to_front()
    await numbers[1].get_by_role("button", name="Previous version").click()
    for person, number in zip((ana, bo), numbers, strict=True):
        await expect(person.answers).to_have_text(texts("Second"))
        await expect(number).to_have_text("2/3")
    await expect(numbers[1].get_by_role("button", name="Previous version")).to_be_focused()
    await expect(bo.page.locator("#announcer")).to_contain_text("Version 2 of 3")
    await ana.page.bring_to_front()
    await expect(undo).to_have_count(1)
    await undo.hover()  # keeps the toast open
    await ana.answers.first.focus()
    await ana.answers.first.press("ArrowLeft")
    await expect(undo).to_have_count(0)
    await expect(bo.answers).to_have_text(texts("First"))
    assert await violations(ana.page) == []
    model.script(reply("Follows the first"))
    await bo.say("And then?")
    await expect(ana.answers).to_have_text(texts("First", "Follows the first"))
    await ana.sees_state("idle")
    await ana.page.bring_to_front()
    await ana.say("/next")
    dialog = ana.page.get_by_role("dialog", name="Switch to this version?")
    await expect(dialog).to_contain_text("3 messages will be removed. Another person wrote some of them.")
    await dialog.get_by_role("button", name="Switch").click()
    await expect(bo.answers).to_have_text(texts("Second"))
    before = await bo.transcript()
    await bo.page.reload()
    assert await bo.transcript() == before
    await expect(numbers[1]).to_have_text("2/3")
    await bo.page.set_viewport_size(PHONE)
    await numbers[1].get_by_role("button", name="Previous version").click()
    await expect(ana.answers).to_have_text(texts("First", "Follows the first"))
    ana.check_console()
    bo.check_console()


async def test_cut_answer_is_continued(ana: Person, model: WireServer, browser: Browser) -> None:
    """RUN-12: an answer that was cut off is continued by its button, at its error, and by command, on all pages."""
    bo = await invited(ana, browser, "Bo")
    model.script(reply("One, ", gate=asyncio.Event()))
    await ana.say("Count")
    await expect(bo.answers.first).to_contain_text("One,")
    await ana.stop.click()
    await bo.sees_state("idle")
    cut = openai.sse(openai.role(), *openai.text("two, "), openai.finish("length"))
    model.script(Reply(cut))
    await button(bo, "Continue").click()
    await expect(ana.page.locator(".note")).to_have_text("Bo let the agent continue.")
    problem = ana.page.locator("article.error")
    await expect(problem).to_contain_text("output limit")
    await ana.sees_state("idle")
    assert await violations(ana.page) == []
    model.script(Reply([*openai.sse(openai.role(), *openai.text("thr"), done=False), Cut()]))
    await problem.get_by_role("button", name="Continue").click()
    await expect(bo.answers).to_have_text(texts("One", "two", "thr"))
    await expect(bo.page.locator("article.error")).to_be_visible()
    await bo.sees_state("idle")
    model.script(reply("ee."))
    await bo.say("/continue")
    await expect(bo.answers).to_have_text(texts("One", "two", "thr", "ee."))
    assert "Continue exactly where it ended" in str(model.requests[-1].body["messages"][-1])
    for person in (ana, bo):
        await expect(person.answers).to_have_text(texts("One", "two", "thr", "ee."))
        await person.sees_state("idle")
    before = await ana.transcript()
    await ana.page.reload()
    assert await ana.transcript() == before
    ana.check_console()
    bo.check_console()


async def test_counters_below_one_answer_have_one_order(ana: Person, model: WireServer) -> None:
    """LIVE-01, RUN-12: a reload shows the counters in the order of their answers, so open pages do, too."""
    await talk(ana, model, "First")
    for message, attempts in ((ana.answers, "2"), (ana.messages.first, "3")):
        await message.evaluate("(each, attempts) => Object.assign(each.dataset, { attempts, attempt: 1 })", attempts)
    await expect(ana.answers.locator(".attempts")).to_have_text(["1/3", "1/2"])


async def test_version_that_arrives_late_leaves_the_focus_in_the_composer(ana: Person, model: WireServer) -> None:
    """RUN-12, UI-09: a user switches to another version and types until it arrives. No key presses its button again."""
    await talk(ana, model, "First")
    model.script(reply("Second"))
    await ana.answers.first.focus()
    await ana.answers.first.press("r")
    await expect(ana.answers).to_have_text(texts("Second"))
    await ana.sees_state("idle")
    line = Line()
    await ana.page.route_web_socket("**/ws/**", line.lead)
    await ana.page.reload()
    await ana.sees_connection("Connected")
    line.hold()
    await button(ana, "Previous version").click()
    await ana.composer.click()
    await ana.page.keyboard.type("I think")
    line.release()
    await expect(ana.page.locator(".attempts")).to_have_text("1/2")
    await ana.page.keyboard.type(" so")
    await expect(ana.composer).to_have_value("I think so")
    await expect(ana.page.locator(".attempts")).to_have_text("1/2")
