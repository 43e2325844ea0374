"""Present and typing users, as several users see them at the same time."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.person import Person
from tests.support.server import Server


async def invitation(host: Person, role: str = "editor") -> str:
    """Create an invitation to the host's session, and return its link."""
    page = host.page
    await page.get_by_role("button", name="Share", exact=True).click()
    await page.locator("#invite-role").select_option(role)
    await page.get_by_role("button", name="Create link").click()
    link = await page.get_by_label("Invitation link").input_value()
    await page.keyboard.press("Escape")
    return link


async def guest(browser: Browser, link: str, name: str) -> Person:
    person = await Person.enter(browser, link)
    await person.page.get_by_label("Your name").fill(name)
    await person.page.get_by_label("User name").fill(name.lower())
    await person.page.get_by_label("Password").fill("a long enough passphrase")
    await person.page.get_by_role("button", name="Join").click()
    await person.sees_connection("Connected")
    return person


@pytest_asyncio.fixture(loop_scope="session")
async def mei(browser: Browser, ana: Person) -> AsyncIterator[Person]:
    person = await guest(browser, await invitation(ana), "Mei")
    yield person
    person.check_console()


async def test_avatars_are_shown_while_users_are_present(ana: Person, mei: Person) -> None:
    """LIVE-05: avatars, with names by mouse and keyboard, are shown only while other users are present."""
    for person in (ana, mei):
        await expect(person.page.get_by_role("button", name="Online: Admin and Mei")).to_be_visible()
    button = ana.page.get_by_role("button", name="Online: Admin and Mei")
    await expect(button.locator(".face:visible")).to_have_text(["AD", "ME"])
    box = ana.page.get_by_role("dialog", name="Online")
    for _ in range(2):  # the box can be opened again
        await button.click()
        await expect(box.get_by_role("listitem")).to_have_text([re.compile("Admin"), re.compile("Mei")])
        await ana.page.keyboard.press("Escape")
        await expect(box).to_have_count(0)
        await expect(button).to_be_focused()
    await button.press("Enter")
    await expect(box).to_be_visible()
    await ana.page.keyboard.press("Escape")
    await mei.page.goto("about:blank")
    await expect(ana.page.locator("#presence")).to_be_hidden()


async def test_typing_is_shown_to_other_users(ana: Person, mei: Person) -> None:
    """LIVE-05: only other users see that a user is typing.

    The line moves nothing, and disappears when the message is sent.
    """
    line, own = ana.page.locator("#typing"), mei.page.locator("#typing")
    composer = ana.page.locator("#composer")
    await ana.sees_connection("Connected")
    before = await composer.bounding_box()
    await mei.composer.press_sequentially("Hel")
    await expect(line).to_contain_text("Mei")
    await expect(line).to_contain_text("is typing…")
    await expect(line).to_be_visible()
    await expect(own).not_to_be_visible()
    assert await composer.bounding_box() == before
    await mei.composer.press("Enter")
    await expect(ana.messages.first).to_contain_text("Hel")
    await expect(line).not_to_be_visible()


async def test_viewers_see_who_is_typing_and_cannot_type(browser: Browser, ana: Person) -> None:
    """LIVE-05, LIVE-06: a viewer is shown as present like other users, sees who is typing, and has no composer."""
    viewer = await guest(browser, await invitation(ana, "viewer"), "Vic")
    await expect(ana.page.get_by_role("button", name="Online: Admin and Vic")).to_be_visible()
    await ana.composer.press_sequentially("Hello")
    await expect(viewer.page.locator("#typing")).to_contain_text("is typing…")
    await expect(viewer.composer).to_have_count(0)
    viewer.check_console()


async def test_page_follows_the_users_role(ana: Person, mei: Person) -> None:
    """LIVE-06: the page follows a lowered and a raised role immediately. The text that was being written is kept."""
    await mei.composer.fill("Not sent yet")
    share = ana.page.get_by_role("button", name="Share", exact=True)
    for role, count in (("viewer", 0), ("editor", 1)):
        await share.click()
        await ana.page.get_by_label("Role of Mei").select_option(role)
        await expect(mei.composer).to_have_count(count)
        await expect(mei.page.locator(".toast").last).to_contain_text(f"You’re {'an' if count else 'a'} {role} now.")
        await ana.page.keyboard.press("Escape")
    await expect(mei.composer).to_have_value("Not sent yet")


async def test_home_shows_changes_of_sessions(server: Server, ana: Person, mei: Person) -> None:
    """The home page shows a new turn and a new title of a session immediately."""
    await ana.page.goto(f"{server.address}/")
    await mei.say("What is the news?")
    row = ana.page.locator("#session-list .session-row").first
    await mei.page.get_by_role("button", name="Rename").first.click()
    await mei.page.get_by_role("textbox", name="Title").fill("News of the day")
    await mei.page.keyboard.press("Enter")
    await expect(row).to_contain_text("News of the day")
