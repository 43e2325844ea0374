"""Paging through a long session while messages before, in and after the loaded part are removed and restored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Route, expect

from tests.browser.crowd import Line
from tests.browser.delays import Delay
from tests.browser.person import Person
from tests.browser.test_messages import choose
from tests.browser.test_page import fill
from tests.browser.test_scrolling import id_of, latest, log, numbered, settled
from tests.support.server import Server

SHOWN = """all => all.map(one => [Number(one.dataset.sequence), parseInt(one.textContent.split("Number ")[1])])"""
Shown = list[list[int]]


@pytest_asyncio.fixture(loop_scope="session")
async def reader(ana: Person, server: Server) -> Person:
    """A user in the middle of 180 messages."""
    await asyncio.to_thread(fill, server)
    await go_to(ana, f"{ana.page.url}#{await id_of(server, 90)}")
    await expect(numbered(ana, 90)).to_be_in_viewport()
    return ana


@pytest_asyncio.fixture(loop_scope="session")
async def other(reader: Person, server: Server) -> AsyncIterator[Person]:
    """The same user in another browser, at the beginning of the session."""
    assert reader.page.context.browser is not None
    state = await reader.page.context.storage_state()
    person = Person(await (await reader.page.context.browser.new_context(storage_state=state)).new_page())
    await go_to(person, f"{reader.page.url.split('#')[0]}#{await id_of(server, 5)}")
    yield person
    person.check_console()


async def go_to(person: Person, address: str) -> None:
    await person.page.goto("about:blank")
    await person.page.goto(address)
    await person.sees_connection("Connected")


async def remove(person: Person, number: int) -> None:
    """Remove the message at a position on a page that shows it."""
    message = person.page.locator(f"#{await numbered(person, number).get_attribute('id')}")
    await choose(person, message, "Delete")
    await expect(message).to_have_count(0)


async def shown(person: Person) -> Shown:
    """Return the sequence and the number in the text of all messages on the page."""
    found: Shown = await person.page.locator("#messages > [data-sequence]").evaluate_all(SHOWN)
    return found


async def shown_from_end_to_end(person: Person) -> Shown:
    """Scroll to both ends until all messages are loaded, and return the result of `shown`."""
    for edge, top in (("older", "0"), ("newer", "log.scrollHeight")):
        more = person.page.locator(f"#{edge}[hx-get]")
        async with asyncio.timeout(20):
            while await more.count():
                await log(person).evaluate(
                    f"log => {{ log.scrollTop = {top}; return new Promise(requestAnimationFrame); }}"
                )
    return await shown(person)


def without(*removed: int) -> Shown:
    kept = [number for number in range(1, 181) if number not in removed]
    return [[place, number] for place, number in enumerate(kept, 1)]


async def test_pages_follow_when_messages_have_moved(reader: Person, other: Person) -> None:
    """MSG-03, LIVE-01: no message is loaded twice or left out after one was removed, or restored."""
    assert await reader.page.locator("#older[hx-get], #newer[hx-get]").count() == 2
    await remove(other, 5)
    await expect(reader.page.locator("#messages")).to_contain_text("Number 90")
    await expect(numbered(reader, 89)).to_contain_text("Number 90")
    await other.page.get_by_role("button", name="Undo").click()
    await expect(numbered(reader, 90)).to_contain_text("Number 90")
    await expect(numbered(other, 5)).to_contain_text("Number 5")
    await remove(other, 6)
    await expect(numbered(reader, 89)).to_contain_text("Number 90")
    assert await shown_from_end_to_end(reader) == without(6)
    assert await shown_from_end_to_end(other) == without(6)


async def test_pages_follow_when_messages_moved_while_the_connection_was_lost(reader: Person, other: Person) -> None:
    """LIVE-02, MSG-03: after a reconnect, messages that were moved in the meantime are at their new positions."""
    await reader.page.context.set_offline(True)
    await reader.sees_connection("You’re offline")
    await remove(other, 5)
    await remove(other, 5)
    await reader.page.context.set_offline(False)
    await expect(numbered(reader, 88)).to_contain_text("Number 90")
    assert await shown_from_end_to_end(reader) == without(5, 6)


async def test_older_page_read_before_a_removal_is_corrected(reader: Person, other: Person, server: Server) -> None:
    """LIVE-01: older messages that were read before a removal and arrive after its event are shown without the removed
    one, at the new positions."""
    late = await Delay.next_response(reader.page, "**/messages?*")
    await log(reader).evaluate("log => log.scrollTop = 0")
    await late.read()
    gone = (await shown(reader))[0][1] - 3
    await go_to(other, f"{other.page.url.split('#')[0]}#{await id_of(server, gone)}")
    await remove(other, gone)
    await expect(numbered(reader, 89)).to_contain_text("Number 90")
    await late.release()
    assert await shown_from_end_to_end(reader) == without(gone)


async def test_move_is_not_applied_twice(reader: Person, other: Person) -> None:
    """LIVE-01: a page of messages is read after a move, and the move's event arrives later.

    The messages are not moved again.
    """
    line = Line()
    await reader.page.route_web_socket("**/ws/**", line.lead)
    await reader.page.reload()
    await reader.sees_connection("Connected")
    await expect(numbered(reader, 90)).to_be_in_viewport()
    line.hold()
    await remove(other, 5)
    await log(reader).evaluate("log => log.scrollTop = 0")
    await expect(reader.page.locator("#messages")).to_contain_text("Number 4")
    line.release()
    await expect(numbered(reader, 89)).to_contain_text("Number 90")
    assert await shown_from_end_to_end(reader) == without(5)


@pytest.mark.parametrize("change", ["removed", "restored"])
async def test_pages_continue_at_a_message_that_has_moved(reader: Person, other: Person, change: str) -> None:
    """LIVE-01, MSG-03: pages that are loaded after a move, but before its event arrives, leave no message out."""
    line = Line()
    await reader.page.route_web_socket("**/ws/**", line.lead)
    await reader.page.reload()
    await reader.sees_connection("Connected")
    if change == "restored":
        await remove(other, 5)
        await expect(numbered(reader, 89)).to_contain_text("Number 90")
    line.hold()
    if change == "removed":
        await remove(other, 5)
    else:
        await other.page.get_by_role("button", name="Undo").click()
        await expect(numbered(other, 5)).to_contain_text("Number 5")
    await shown_from_end_to_end(reader)
    line.release()
    # A message from before the move.
    await expect(numbered(reader, 89 if change == "removed" else 90)).to_contain_text("Number 90")
    assert await shown(reader) == (without(5) if change == "removed" else without())


async def test_keys_and_the_palette_lead_to_the_beginning(reader: Person) -> None:
    """UI-11: Ctrl+Home leads to the first message of the session, whatever is loaded, and more loads from there."""
    await reader.page.locator("#log").focus()
    await reader.page.keyboard.press("Control+Home")
    await expect(numbered(reader, 1)).to_be_in_viewport()
    assert (await shown(reader))[0][0] == 1
    await expect(reader.page.locator("#messages > article.message").first).to_be_focused()
    await log(reader).evaluate("log => (log.scrollTop = log.scrollHeight)")
    await expect(numbered(reader, 60)).to_have_count(1)


async def test_older_messages_that_arrive_late_leave_no_hole(reader: Person) -> None:
    """LIVE-01: older messages that arrive after the user has gone to the end are not shown before the newest ones."""
    held: list[Route] = []
    await reader.page.route("**/messages?before=*", lambda route: held.append(route), times=1)
    async with reader.page.expect_request("**/messages?before=*"):
        await log(reader).evaluate("log => log.scrollTop = 0")
    await latest(reader).click()
    await expect(numbered(reader, 180)).to_be_in_viewport()
    with suppress(PlaywrightError):  # the page may have aborted the request
        await held[0].continue_()
    assert await shown_from_end_to_end(reader) == without()


async def test_link_that_loads_late_leaves_the_focus_in_the_composer(ana: Person, server: Server) -> None:
    """UI-09, UI-11: a user who opens a link to a message and types while it loads continues to type.

    No letter becomes a command for the message.
    """
    await asyncio.to_thread(fill, server)
    linked, session = await id_of(server, 20), ana.page.url
    late = await Delay.next_response(ana.page, "**/messages?around=*")
    await ana.page.goto("about:blank")
    await ana.page.goto(f"{session}#{linked}")
    await late.read()
    await expect(ana.composer).to_be_focused()
    await ana.page.keyboard.type("For")
    await late.release()
    await ana.page.wait_for_function("id => document.getElementById(id)?.getAnimations().length", arg=linked)
    await expect(numbered(ana, 20)).to_be_in_viewport()
    await ana.page.keyboard.type(" example")
    await expect(ana.composer).to_have_value("For example")
    assert ana.page.url == f"{session}#{linked}"


async def test_beginning_that_loads_late_leaves_the_focus_in_the_composer(ana: Person, server: Server) -> None:
    """UI-11: a user who goes to the first message and types while it loads continues to type."""
    await asyncio.to_thread(fill, server)
    await ana.page.reload()
    await ana.sees_connection("Connected")
    late = await Delay.next_response(ana.page, "**/messages?start=*")
    await log(ana).focus()
    await ana.page.keyboard.press("Control+Home")
    await late.read()
    await ana.composer.click()
    await ana.page.keyboard.type("For")
    await late.release()
    await settled(numbered(ana, 1))
    await expect(numbered(ana, 1)).to_be_in_viewport()
    await ana.page.keyboard.type(" example")
    await expect(ana.composer).to_have_value("For example")
