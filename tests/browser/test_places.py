"""Messages that are removed and restored in the middle of a conversation, on every open page."""

from __future__ import annotations

from playwright.async_api import Browser, Locator, expect

from tests.browser.person import Person
from tests.browser.test_chat import invited, reply
from tests.browser.test_messages import choose, talk
from tests.wire.server import WireServer


def numbers(person: Person) -> Locator:
    return person.page.locator("#messages > [data-sequence]")


async def places(person: Person) -> list[list[str]]:
    """Return the id, sequence and revision of every message on a page."""
    script = "rows => rows.map(row => [row.id, row.dataset.sequence, row.dataset.revision])"
    found: list[list[str]] = await numbers(person).evaluate_all(script)
    return found


async def test_removal_and_restoration_move_messages_on_all_pages(
    ana: Person, browser: Browser, model: WireServer
) -> None:
    """MSG-03, MSG-11, LIVE-01: the following messages move on each page, so that the next one gets its position.

    A reload shows the same.
    """
    await talk(ana, model, "One.", "Two.")
    bo = await invited(ana, browser, "Bo")
    await choose(ana, ana.answers.first, "Delete")
    await expect(ana.answers).to_have_count(1)
    await expect(bo.answers).to_have_count(1)
    await ana.page.get_by_role("button", name="Undo").click()
    for person in (ana, bo):
        await expect(person.answers).to_have_count(2)
        await expect(person.answers.first).to_contain_text("One.")
    model.script(reply("Three."))
    await bo.say("Question 3")
    for person in (ana, bo):
        await expect(person.answers.nth(2)).to_contain_text("Three.")
        await person.sees_state("idle")
    live = await places(bo)
    assert await places(ana) == live
    await bo.page.reload()
    await expect(bo.answers).to_have_count(3)
    assert await places(bo) == live
    bo.check_console()
