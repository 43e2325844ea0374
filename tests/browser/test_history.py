"""Message history, removed messages, concurrent edits, and actions that are refused while the agent works.

All tests run in real browsers, with another user watching.
"""

from __future__ import annotations

import asyncio
import re

from playwright.async_api import Browser, Locator, expect

from tests.browser.person import Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, reply
from tests.browser.test_messages import choose, menu, talk
from tests.browser.test_panel import opened, panel, press, prompt
from tests.wire.server import WireServer


def history(person: Person, of: str = "Edit history") -> Locator:
    return person.page.get_by_role("dialog", name=of)


def field(person: Person) -> Locator:
    return person.page.get_by_role("textbox", name="Edit message")


def button(person: Person, name: str) -> Locator:
    return person.page.get_by_role("button", name=name, exact=True)


async def key(message: Locator, keys: str) -> None:
    await message.focus()
    await message.press(keys)


async def change(person: Person, message: Locator, text: str) -> None:
    await key(message, "e")
    await field(person).fill(text)
    await button(person, "Save").click()
    await expect(field(person)).to_have_count(0)


async def test_history_names_authors_and_restores_versions(ana: Person, model: WireServer, browser: Browser) -> None:
    """MSG-11, UI-11: the history opens from the mark and by key, and updates live. All users see a restored version."""
    await talk(ana, model, "Be brief and kind.")
    bo = await invited(ana, browser, "Bo")
    answer, theirs = ana.answers.first, bo.answers.first
    await change(bo, theirs, "Be long and kind.")
    await answer.get_by_role("button", name="edited").click()
    versions = history(ana).get_by_role("listitem")
    await expect(versions).to_have_count(2)
    await expect(versions.first).to_contain_text(re.compile("Edited.*Bo"))
    await expect(versions.first.locator("del")).to_have_text("brief")
    await expect(versions.first.locator("ins")).to_have_text("long")
    assert await violations(ana.page) == []
    await choose(bo, theirs, "Exclude from context")
    await expect(versions.first).to_contain_text("Excluded from context")
    await versions.last.get_by_role("button", name="Show all").click()
    await expect(versions.last.get_by_role("region", name="Show all")).to_have_text("Be brief and kind.")
    await versions.last.get_by_role("button", name="Restore this version").click()
    await expect(versions).to_have_count(4)
    await expect(versions.last).to_contain_text("current")
    await expect(theirs.locator("[data-body]")).to_have_text("Be brief and kind.")
    await ana.page.keyboard.press("Escape")
    await expect(answer).to_be_focused()
    await key(answer, "h")
    await expect(history(ana)).to_be_visible()
    bo.check_console()


async def test_removed_messages_are_found_and_restored(ana: Person, model: WireServer, browser: Browser) -> None:
    """MSG-11, RUN-12, UI-11: removed messages are restored in their place; those that a retry replaced can be read."""
    await talk(ana, model, "First", "Second", "Third")
    bo = await invited(ana, browser, "Bo")
    await key(bo.answers.first, "Delete")
    await expect(ana.answers).to_have_count(2)
    await key(ana.answers.first, "Delete")
    await expect(bo.answers).to_have_count(1)
    await button(ana, "More").click()
    await ana.page.get_by_role("menuitem", name="Removed messages").click()
    dialog = history(ana, "Removed messages")
    acts = dialog.locator(".version")
    await expect(acts).to_have_text([re.compile("Admin.*Second", re.S), re.compile("Bo.*First", re.S)])
    assert await violations(ana.page) == []
    await acts.last.get_by_role("button", name="Restore").click()
    await expect(bo.answers).to_have_text([re.compile("First"), re.compile("Third")])
    await expect(acts).to_have_count(1)
    model.script(reply("Again"))
    await choose(bo, bo.answers.first, "Retry from here")
    await bo.page.get_by_role("dialog").get_by_role("button", name="Retry from here").click()
    await expect(acts.first).to_contain_text("Replaced by a retry")
    await expect(acts.first).to_contain_text("Third")
    await acts.last.get_by_role("button", name="Restore").click()
    await expect(ana.page.locator("#toasts")).to_contain_text("A retry replaced this part")
    await expect(bo.answers).to_have_text([re.compile("Again")])
    await bo.sees_state("idle")
    await button(ana, "Restore these messages").click()
    await expect(bo.answers).to_have_text([re.compile("First"), re.compile("Third")])
    await expect(acts.first).to_contain_text("Again")
    bo.check_console()


async def test_concurrent_edits_show_both_texts(ana: Person, model: WireServer, browser: Browser) -> None:
    """MSG-11: the second user is notified immediately and chooses a text. No text is lost, even with a reload."""
    await talk(ana, model, "An answer")
    bo = await invited(ana, browser, "Bo")
    answer, theirs = ana.answers.first, bo.answers.first
    await key(answer, "e")
    await field(ana).fill("Ana's answer")
    await ana.page.set_viewport_size({"width": 1000, "height": 560})
    await change(bo, theirs, "Bo's answer")
    conflict = answer.locator(".conflict")
    await expect(conflict.get_by_role("alert")).to_contain_text("Bo edited this while you were typing.")
    await expect(conflict.get_by_role("region", name="Current version")).to_have_text("Bo's answer")
    await expect(conflict.locator("del")).to_have_text("Bo")
    await expect(button(ana, "Use mine")).to_be_in_viewport(ratio=1)
    await expect(field(ana)).to_be_focused()
    assert await violations(ana.page) == []
    await field(ana).press("Control+Enter")
    await expect(button(ana, "Use mine")).to_be_focused()
    await ana.page.reload()
    await key(answer, "e")
    await expect(field(ana)).to_have_value("Ana's answer")
    await expect(conflict.get_by_role("alert")).to_contain_text("Bo edited this while you were typing.")
    await field(ana).press("End")
    await field(ana).press_sequentially("!")
    await expect(conflict.locator("ins").last).to_have_text("!")
    await button(ana, "Use mine").click()
    await expect(theirs.locator("[data-body]")).to_have_text("Ana's answer!")
    await expect(field(ana)).to_have_count(0)
    await key(answer, "e")
    await field(ana).fill("Ana's again")
    await change(bo, theirs, "Bo's again")
    await button(ana, "Keep theirs").click()
    await expect(answer.locator("[data-body]")).to_have_text("Bo's again")
    await button(ana, "Keep editing").click()
    await expect(field(ana)).to_have_value("Ana's again")
    bo.check_console()


async def test_queued_message_is_changed_on_two_devices(ana: Person, model: WireServer, browser: Browser) -> None:
    """RUN-06, MSG-11: a user who edits a queued message on two devices sees both texts and chooses.

    The text survives a reload.
    """
    gate = asyncio.Event()
    model.script(reply("Wor", gate=gate, rest=("king",)), reply("Done"))
    await ana.say("Go")
    await expect(ana.answers).to_have_count(1)
    await ana.say("Then this")
    await expect(ana.queue).to_have_count(1)
    context = await browser.new_context(storage_state=await ana.page.context.storage_state())
    other = Person(await context.new_page())
    await other.page.goto(ana.page.url)
    text = "Queued message"
    for person in (ana, other):
        await button(person, "Edit the queued message").click()
    await expect(ana.queue.locator(".queued-text")).to_be_hidden()
    await ana.queue.get_by_role("textbox", name=text).fill("Rather this")
    await ana.page.reload()
    await expect(ana.queue.get_by_role("textbox", name=text)).to_have_value("Rather this")
    await other.queue.get_by_role("textbox", name=text).fill("Or that")
    await other.page.keyboard.press("Enter")
    await expect(ana.queue.get_by_role("alert")).to_contain_text("You changed this elsewhere while you were typing.")
    await button(ana, "Use mine").click()
    await expect(other.queue.locator(".queued-text")).to_have_text("Rather this")
    await expect(ana.queue.locator(".queued-text")).to_be_visible()
    gate.set()
    await expect(ana.messages.filter(has_text="Rather this")).to_have_count(1)
    await ana.sees_state("idle")
    other.check_console()


async def test_system_prompt_has_a_history(ana: Person, browser: Browser) -> None:
    """UI-11, MSG-11: the history opens from the panel; all users see a restored version."""
    bo = await invited(ana, browser, "Bo")
    await opened(bo)
    await prompt(bo).fill("Be kind.")
    await press(bo, "Save").click()
    await expect(panel(bo)).to_contain_text("Saved")
    await opened(ana)
    await press(ana, "History").click()
    dialog = history(ana, "System prompt history")
    versions = dialog.get_by_role("listitem")
    await expect(versions.first).to_contain_text(re.compile("Edited.*Bo"))
    await expect(versions.last).to_contain_text("At the start")
    await versions.last.get_by_role("button", name="Restore this version").click()
    await expect(versions).to_have_count(3)
    await expect(prompt(bo)).not_to_have_value("Be kind.")
    await ana.page.keyboard.press("Escape")
    bo.check_console()


async def test_action_refused_during_a_turn_offers_to_stop_it(ana: Person, model: WireServer, browser: Browser) -> None:
    """RUN-12, MSG-11, UI-11: a retry, an edit and a deletion are refused during a turn.

    The notice has a button that stops the turn and then does it.
    """
    await talk(ana, model, "First")
    bo = await invited(ana, browser, "Bo")
    model.script(reply("Wor", gate=asyncio.Event()), reply("Again"))
    await ana.say("Go")
    await ana.sees_state("thinking")
    first = ana.answers.first
    await first.hover()
    await first.get_by_role("button", name="Retry from here").click()
    await expect(ana.page.get_by_role("alert")).to_contain_text("The agent is working.")
    await button(ana, "Stop and retry from here").press("Enter")
    await ana.page.get_by_role("dialog").get_by_role("button", name="Retry from here").press("Enter")
    await expect(ana.page.get_by_role("alert")).to_be_hidden()
    for person in (ana, bo):
        await expect(person.answers).to_have_text([re.compile("Again")])
        await person.sees_state("idle")
    model.script(reply("Wor", gate=asyncio.Event()))
    await ana.say("Go on")
    await ana.sees_state("thinking")
    question = ana.messages.filter(has_text="Go on")
    await key(question, "e")
    await field(ana).fill("Go home")
    await button(ana, "Save").click()
    await expect(ana.page.get_by_role("alert")).to_contain_text("The agent is using this message.")
    await button(ana, "Stop and save").click()
    await expect(bo.messages.filter(has_text="Go home")).to_have_count(1)
    await expect(field(ana)).to_have_count(0)
    for person in (ana, bo):
        await person.sees_state("idle")
    model.script(reply("Wor", gate=asyncio.Event()))
    await ana.say("More")
    await ana.sees_state("thinking")
    await ana.answers.first.hover()
    await ana.answers.first.get_by_role("button", name="More actions").click()
    await menu(ana).get_by_role("menuitem", name="Stop and delete").click()
    await expect(bo.answers.filter(has_text="Again")).to_have_count(0)
    await bo.sees_state("idle")
    bo.check_console()


async def test_every_action_is_seen_by_other_users(ana: Person, model: WireServer, browser: Browser) -> None:
    """MSG-09, MSG-11, RUN-12, RUN-13: others see each edit, exclusion, inclusion, deletion, Undo and retry.

    A fork leaves the original unchanged.
    """
    await talk(ana, model, "First", "Second")
    bo = await invited(ana, browser, "Bo")
    answer, watched = ana.answers.first, bo.answers.first
    await change(ana, answer, "Changed")
    await expect(watched).to_contain_text("Changed")
    await key(answer, "x")
    for message in (answer, watched):
        await expect(message).to_contain_text("hidden from the model")
    await key(answer, "x")
    for message in (answer, watched):
        await expect(message).not_to_contain_text("hidden from the model")
    await key(answer, "Delete")
    await expect(bo.answers).to_have_count(1)
    await button(ana, "Undo").click()
    await expect(bo.answers).to_have_count(2)
    model.script(reply("Again"))
    await key(ana.answers.last, "r")
    for person in (ana, bo):
        await expect(person.answers.last).to_contain_text("Again")
    await ana.sees_state("idle")
    model.script(reply("Forked"))
    await key(ana.messages.filter(has_text="Question 2"), "e")
    await field(ana).fill("Another question")
    original = ana.page.url
    await button(ana, "Fork with this edit").click()
    await ana.page.wait_for_url(lambda url: url != original)
    await expect(ana.messages).to_have_text(
        [re.compile(text) for text in ("Question 1", "Changed", "Another question", "Forked")]
    )
    await expect(bo.messages).to_have_count(4)
    await expect(bo.messages.filter(has_text="Another question")).to_have_count(0)
    bo.check_console()


async def test_edit_continues_after_an_expired_sign_in(ana: Person, model: WireServer) -> None:
    """LIVE-04: the sign-in page says that the edit is kept. Afterwards the edit is in view and has the focus."""
    await talk(ana, model, "One\n" * 90 + "first", "Two\n\n" * 40 + "second")
    await key(ana.answers.first, "e")
    await field(ana).fill("A better answer")
    cookies = await ana.page.context.cookies()
    session = ana.page.url
    await ana.page.context.clear_cookies(name="parley_session")
    await ana.page.evaluate("document.dispatchEvent(new CustomEvent('parley:list-changed', { detail: { now: true } }))")
    await ana.page.wait_for_url("**/accounts/sign-in/**")
    await expect(ana.page.get_by_role("status")).to_contain_text("Your edit is kept in this browser.")
    await ana.page.context.add_cookies(cookies)  # type: ignore[arg-type]  # they are what the browser gave
    await ana.page.goto(session)
    await expect(field(ana)).to_have_value("A better answer")
    await expect(field(ana)).to_be_focused()
    await expect(field(ana)).to_be_in_viewport()
