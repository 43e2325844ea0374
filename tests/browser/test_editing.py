"""Who is editing a message, as others see it: at the message, in their own editor, and in the panel."""

from __future__ import annotations

import asyncio

from playwright.async_api import Browser, Locator, expect

from tests.browser.person import Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, reply
from tests.browser.test_history import field, key
from tests.browser.test_messages import choose, talk
from tests.browser.test_panel import opened, prompt
from tests.wire.server import WireServer

SHARED = "is editing this too. If they save first, you can compare both versions before you save."


def line(message: Locator) -> Locator:
    return message.locator(".editing-now")


def note(message: Locator) -> Locator:
    return message.locator(".editing-too")


async def test_others_see_who_is_editing(ana: Person, model: WireServer, browser: Browser) -> None:
    """LIVE-08: at the message alone, not in the user's own page; it stays through changes of the message, is no live
    region, reaches who comes later, and ends when the form closes."""
    await talk(ana, model, "An answer")
    bo = await invited(ana, browser, "Bo")
    answer, theirs = ana.answers.first, bo.answers.first
    await key(theirs, "e")
    await expect(line(answer)).to_contain_text("Bo")
    await expect(line(answer)).to_contain_text("is editing…")
    await expect(ana.page.locator(".editing-now:visible")).to_have_count(1)
    await expect(line(theirs)).to_have_count(0)
    assert await line(answer).evaluate("line => line.closest('[aria-live], [role=status], [role=alert]')") is None
    assert await violations(ana.page) == []
    await choose(ana, answer, "Exclude from context")
    await expect(answer.locator(".left-out")).to_be_visible()
    await expect(line(answer)).to_be_visible()
    await ana.page.reload()
    await expect(line(answer)).to_contain_text("is editing…")
    await field(bo).press("Escape")
    await expect(line(answer)).to_have_count(0)
    bo.complain()


async def test_reload_and_deletion_end_it(ana: Person, model: WireServer, browser: Browser) -> None:
    """LIVE-08: a page that is loaded again has no editor open, unless it has an unsaved edit; nor has a message that is
    deleted."""
    await talk(ana, model, "An answer", "Another answer")
    bo = await invited(ana, browser, "Bo")
    first, last = ana.answers.first, ana.answers.last
    await key(bo.answers.first, "e")
    await expect(line(first)).to_be_visible()
    await bo.page.reload()
    await expect(line(first)).to_have_count(0)
    await key(bo.answers.last, "e")
    await field(bo).fill("Not saved")
    await expect(line(last)).to_be_visible()
    await bo.page.reload()
    await expect(field(bo)).to_have_value("Not saved")
    await expect(line(last)).to_be_visible()
    await key(last, "Delete")
    await expect(ana.answers).to_have_count(1)
    await expect(field(bo)).to_have_count(0)
    await expect(ana.page.locator(".editing-now:visible")).to_have_count(0)
    bo.complain()


async def test_delivery_ends_the_editing_of_a_queued_message(ana: Person, model: WireServer, browser: Browser) -> None:
    """LIVE-08: others see it in the queue; the form goes with its place there, and the sent message has no editor."""
    bo = await invited(ana, browser, "Bo")
    gate = asyncio.Event()
    model.script(reply("Wor", gate=gate, rest=("king",)), reply("Done"))
    await ana.say("Go")
    await expect(ana.answers).to_have_count(1)
    await bo.say("Then this")
    await expect(ana.queue).to_have_count(1)
    await bo.page.get_by_role("button", name="Edit the queued message", exact=True).click()
    await expect(line(ana.queue)).to_contain_text("is editing…")
    gate.set()
    await expect(ana.messages.filter(has_text="Then this")).to_have_count(1)
    # Sooner than the next renewal, which would end it, too.
    await expect(ana.page.locator(".editing-now:visible")).to_have_count(0, timeout=15_000)
    bo.complain()


async def test_second_editor_learns_of_the_first(ana: Person, model: WireServer, browser: Browser) -> None:
    """LIVE-08: in the form, as the description of the field; for who was first, as an announcement, too. The focus and
    the text stay, and the conflict after a save is as ever (MSG-11)."""
    await talk(ana, model, "An answer")
    bo = await invited(ana, browser, "Bo")
    answer, theirs = ana.answers.first, bo.answers.first
    await key(theirs, "e")
    await field(bo).press_sequentially("!")
    await expect(line(answer)).to_be_visible()
    await key(answer, "e")
    await expect(note(answer)).to_contain_text(SHARED)
    await expect(line(answer)).to_be_hidden()
    description = "field => document.getElementById(field.getAttribute('aria-describedby')).textContent"
    assert SHARED in await field(ana).evaluate(description)
    await expect(note(theirs)).to_contain_text("Admin")
    await expect(bo.page.locator("#announcer")).to_contain_text(SHARED)
    await expect(field(bo)).to_be_focused()
    await expect(field(bo)).to_have_value("An answer!")
    for person in (ana, bo):
        assert await violations(person.page) == []
    await field(bo).press("Control+Enter")
    await expect(field(bo)).to_have_count(0)
    await expect(note(answer)).to_have_count(0)
    await expect(field(ana)).to_have_value("An answer!")
    await expect(line(theirs)).to_contain_text("Admin")
    await field(ana).press("Escape")
    await expect(line(theirs)).to_have_count(0)
    bo.complain()


async def test_several_are_named_and_a_suggestion_is_no_editing(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """LIVE-08: two by their names, more by their number; who can only suggest an edit changes nothing."""
    await talk(ana, model, "An answer")
    people: list[Person] = []
    for name in ("Bo", "Cy", "Di"):
        people.append(await invited(ana, browser, name))
        await ana.page.reload()  # the share dialog starts without the last link
    bo, cy, di = people
    for person, words in ((bo, "is editing…"), (cy, "are editing…"), (di, "Several people are editing…")):
        await key(person.answers.first, "e")
        await expect(line(ana.answers.first)).to_contain_text(words)
    await expect(note(bo.answers.first)).to_contain_text("are editing this too.")
    question = bo.page.locator("#messages .user")
    await choose(bo, question, "Suggest an edit")
    await expect(field(bo).or_(bo.page.get_by_role("textbox", name="Suggest an edit"))).to_have_count(2)
    await di.page.goto("about:blank")
    await expect(line(ana.answers.first)).to_contain_text("and")
    await expect(line(ana.page.locator("#messages .user"))).to_have_count(0)
    for person in (bo, cy):
        person.complain()


async def test_system_prompt_has_editors(ana: Person, model: WireServer, browser: Browser) -> None:
    """LIVE-08: while the text in the panel differs; others see it there, and what they type is kept."""
    bo = await invited(ana, browser, "Bo")
    for person in (ana, bo):
        await opened(person)
    seen = ana.page.locator("#prompt-editing")
    await expect(seen).to_be_hidden()
    await prompt(bo).fill("Be brief")
    await expect(seen).to_contain_text("is editing…")
    await prompt(ana).fill("Be kind")
    await expect(seen).to_contain_text(SHARED)
    assert await violations(ana.page) == []
    await bo.page.get_by_role("button", name="Discard", exact=True).click()
    await expect(seen).to_be_hidden()
    await expect(prompt(ana)).to_have_value("Be kind")
    bo.complain()
