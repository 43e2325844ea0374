"""The search in a session by keyboard, also in messages that are not loaded."""

from __future__ import annotations

import asyncio

from playwright.async_api import expect

from tests.browser.person import Person
from tests.browser.test_page import fill
from tests.support.server import Server

FIND = "**/find?*"
MARKED = "words => [...(CSS.highlights.get('found-now') ?? [])].map(String).join() === words"


async def test_find_covers_messages_that_are_not_loaded(ana: Person, server: Server) -> None:
    """Ctrl+F searches the whole session, marks the hits, and goes to the next and the previous one.

    Escape returns to the message.
    """
    await asyncio.to_thread(fill, server)
    await ana.page.reload()
    await expect(ana.page.get_by_text("Number 180").first).to_be_in_viewport()
    await ana.page.keyboard.press("Control+f")
    field = ana.page.get_by_role("textbox", name="Text to find")
    found = ana.page.locator(".find output")
    await expect(field).to_be_focused()
    await field.fill("nothing like it")
    await expect(found).to_have_text("No matches")
    await field.fill("NUMBER 17")
    await expect(found).to_contain_text("of 33")  # in 17 and 170 to 179, once to five times in each
    await expect(ana.messages.filter(has_text="Number 17")).to_have_count(10)
    begin = int((await found.inner_text()).split()[0])
    assert begin > 1  # the search begins at the reader's position
    for number in range(begin - 1, 0, -1):
        await field.press("Shift+Enter")
        await expect(found).to_have_text(f"{number} of 33")
        await ana.page.wait_for_function(MARKED, arg="Number 17")  # one hit
    first = ana.page.locator('#messages > [data-sequence="17"]')
    await expect(first).to_be_in_viewport()
    await expect(field).to_be_focused()
    await ana.page.wait_for_function(MARKED, arg="Number 17")
    for _ in range(3):
        await field.press("Enter")
    await expect(found).to_have_text("4 of 33")
    await expect(ana.page.locator('#messages > [data-sequence="170"]')).to_be_in_viewport()
    await ana.page.get_by_role("button", name="Previous match").click()
    await expect(first).to_be_in_viewport()
    await field.press("Escape")
    await expect(field).to_have_count(0)
    await expect(first).to_be_focused()
    await ana.page.wait_for_function(MARKED, arg="")


async def test_failed_search_is_reported_and_repeated(ana: Person) -> None:
    """LIVE-04: a failed search is reported instead of showing no matches, and Enter repeats it."""
    await ana.say("A needle")
    await expect(ana.answers).to_have_count(1)
    await ana.sees_state("idle")
    await ana.page.route(FIND, lambda route: route.fulfill(status=429, body="Too many requests."))
    await ana.page.keyboard.press("Control+f")
    field, found = ana.page.get_by_role("textbox", name="Text to find"), ana.page.locator(".find output")
    await field.fill("needle")
    await expect(found).to_have_text("Search failed")
    await ana.page.unroute(FIND)
    await field.press("Enter")
    await expect(found).to_contain_text("of")
    ana.ignore_refusals()
