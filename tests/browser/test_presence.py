"""Who is present and who is typing, as seen by several users at once."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.person import Person
from tests.support.server import Server


async def invitation(host: Person, role: str = "editor") -> str:
    """Return a link into the host's session."""
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
    person.complain()


async def test_people_come_and_go(ana: Person, mei: Person) -> None:
    """LIVE-05: avatars while other users are present, their names by mouse and keyboard; none when alone."""
    for person in (ana, mei):
        await expect(person.page.get_by_role("button", name="Online: Admin and Mei")).to_be_visible()
    button = ana.page.get_by_role("button", name="Online: Admin and Mei")
    await expect(button.locator(".face:visible")).to_have_text(["AD", "ME"])
    box = ana.page.get_by_role("dialog", name="Online")
    for _ in range(2):  # it opens again after it was closed
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


async def test_typing_is_seen_by_others_alone(ana: Person, mei: Person) -> None:
    """LIVE-05: users do not see their own; nothing moves; it ends with the message."""
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
    """LIVE-05, LIVE-06: a viewer is shown as present like other users."""
    viewer = await guest(browser, await invitation(ana, "viewer"), "Vic")
    await expect(ana.page.get_by_role("button", name="Online: Admin and Vic")).to_be_visible()
    await ana.composer.press_sequentially("Hello")
    await expect(viewer.page.locator("#typing")).to_contain_text("is typing…")
    await expect(viewer.composer).to_have_count(0)
    viewer.complain()


async def test_page_follows_its_reader_s_role(ana: Person, mei: Person) -> None:
    """LIVE-06: the page follows a lowered and a raised role at once; the text that was being written is kept."""
    await mei.composer.fill("Not sent yet")
    share = ana.page.get_by_role("button", name="Share", exact=True)
    for role, count in (("viewer", 0), ("editor", 1)):
        await share.click()
        await ana.page.get_by_label("Role of Mei").select_option(role)
        await expect(mei.composer).to_have_count(count)
        await expect(mei.page.locator(".toast").last).to_contain_text(f"You’re {'an' if count else 'a'} {role} now.")
        await ana.page.keyboard.press("Escape")
    await expect(mei.composer).to_have_value("Not sent yet")


async def test_list_hears_of_other_sessions(server: Server, ana: Person, mei: Person) -> None:
    """A turn and a new title in a session that is not open show at once, on the home page too."""
    await ana.page.goto(f"{server.address}/")
    await mei.say("What is the news?")
    row = ana.page.locator("#rail-list .rail-row").first
    await mei.page.get_by_role("button", name="Rename").first.click()
    await mei.page.get_by_role("textbox", name="Title").fill("News of the day")
    await mei.page.keyboard.press("Enter")
    await expect(row).to_contain_text("News of the day")
