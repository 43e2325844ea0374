"""Agents of members in a real browser: one user makes and shares an agent, and another uses it."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import urljoin

from playwright.async_api import Browser, Page, expect

from tests.browser.person import Person, without_login
from tests.browser.test_chat import invited, reply
from tests.wire.server import WireServer


async def open_new_agent(person: Person) -> Page:
    """Go from the picker of agents to the form of a new agent by keyboard."""
    page = person.page
    await page.locator("#model").press("Enter")
    await page.get_by_role("link", name="New agent").press("Enter")
    await expect(page.get_by_role("heading", name="New agent")).to_be_visible()
    # The icons are hidden until the page's script runs, which also guards unsaved input.
    await expect(page.get_by_role("button", name="Table", exact=True)).to_be_visible()
    return page


async def test_one_user_makes_an_agent_and_another_uses_it(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-21: a user makes an agent with instructions, a model and an opening prompt, shares, archives and restores it.

    Another user uses and copies it.
    """
    bo = await invited(ana, browser, "Bo", member=True)
    session = ana.page.url
    page = await open_new_agent(ana)
    await page.get_by_label("Name", exact=True).fill("Release writer")
    await page.get_by_label("Pen", exact=True).check(force=True)
    await page.get_by_label("Model", exact=True).select_option("wire/wire-small")
    await page.get_by_label("System prompt").fill("Write release notes.")
    async with page.expect_event("dialog") as shown:
        leaving = asyncio.create_task(page.get_by_role("link", name="Cancel").click())
    question = await shown.value
    assert question.type == "beforeunload"
    await question.dismiss()
    await leaving
    await expect(page.get_by_label("System prompt")).to_have_value("Write release notes.")
    prompts = page.get_by_label("Opening prompts", exact=True)
    await prompts.fill("What is new?\nskull | Notes | Write the notes")
    await page.get_by_role("button", name="Create agent").click()
    await expect(page.get_by_role("alert")).to_contain_text("Line 2: there is no icon “skull”.")
    await expect(prompts).to_be_focused()
    ana.ignore_refusals()
    await expect(page.get_by_label("System prompt")).to_have_value("Write release notes.")
    await expect(page.get_by_label("Pen", exact=True)).to_be_checked()
    await prompts.fill("Write the notes")
    await page.get_by_role("button", name="Table", exact=True).press("Enter")
    await expect(prompts).to_have_value("Table | Heading | Write the notes")
    await page.keyboard.type("Notes")
    await page.get_by_role("button", name="Create agent").click()
    mine = page.locator("li", has_text="Release writer")
    await expect(mine).to_contain_text("Only you · wire-small")

    theirs = bo.page
    await theirs.goto(urljoin(session, "/"))
    await theirs.locator("#model").click()
    await expect(theirs.get_by_role("link", name="Manage agents")).to_be_visible()
    await expect(theirs.get_by_role("option", name="Release writer")).to_have_count(0)
    await mine.get_by_role("button", name="Share").click()
    await expect(page.locator("#toasts")).to_contain_text("Everyone in the workspace can now use “Release writer”.")

    await theirs.reload()
    await theirs.locator("#model").click()
    await theirs.get_by_role("option", name="Release writer").click()
    await expect(theirs.get_by_role("button", name="Notes Write the notes")).to_be_visible()
    model.script(reply("Here they are"))
    await theirs.get_by_role("button", name="Notes Write the notes").click()
    await expect(bo.answers.last).to_contain_text("Here they are")
    icon = theirs.locator(".message.assistant > .face .icon use")
    await expect(icon).to_have_attribute("href", re.compile("#square-pen$"))
    await theirs.reload()
    await expect(icon).to_have_attribute("href", re.compile("#square-pen$"))
    sent = model.requests[-1].body
    assert sent["model"] == "wire-small"
    assert "Write release notes." in str(sent)

    await theirs.goto(urljoin(session, "/"))
    await theirs.locator("#model").click()
    await theirs.get_by_role("link", name="Manage agents").click()
    shared = theirs.locator("li", has_text="Release writer")
    await expect(shared).to_contain_text("Admin")
    await expect(shared.get_by_role("button", name="Archive")).to_have_count(0)
    await shared.get_by_role("button", name="Copy").click()
    await expect(theirs.get_by_label("Name", exact=True)).to_have_value("Release writer (copy)")
    await expect(theirs.get_by_label("Opening prompts", exact=True)).to_have_value("Table | Notes | Write the notes")

    await mine.get_by_role("button", name="Archive").click()
    await page.locator("#toasts").get_by_role("button", name="Undo").click()
    await expect(page.locator("#toasts")).to_contain_text("“Release writer” restored.")
    await expect(mine).to_contain_text("Shared with the workspace")
    bo.check_console()


async def test_agent_made_in_another_tab_can_be_chosen_on_the_home_page(ana: Person, browser: Browser) -> None:
    """UI-21: the home page offers an agent that was made in another tab, and keeps the draft."""
    page = ana.page
    home = urljoin(page.url, "/")
    await page.goto(home)
    await page.get_by_label("First message").fill("A long thought")
    other = await page.context.new_page()
    await other.goto(home)
    await other.locator("#model").click()
    await other.get_by_role("link", name="New agent").click()
    await other.get_by_label("Name", exact=True).fill("Fresh")
    await other.get_by_role("button", name="Create agent").click()
    await expect(other.locator("#toasts")).to_contain_text("Agent “Fresh” created.")
    await page.locator("#model").click()
    await page.get_by_role("option", name="Fresh").click()
    await expect(page.locator("#model")).to_contain_text("Fresh")
    await expect(page.get_by_label("First message")).to_have_value("A long thought")


async def test_entries_survive_the_end_of_the_login(ana: Person) -> None:
    """If the login has ended, the form is filled in again after the sign-in. After it was saved, it is empty again."""
    page = await open_new_agent(ana)
    await page.get_by_label("Name", exact=True).fill("Release writer")
    await page.get_by_label("System prompt").fill("Write release notes.")
    async with without_login(page):
        await page.get_by_role("button", name="Create agent").click()
        await expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    await page.reload()  # as after the user has signed in, in this or another tab
    await expect(page.locator("#toasts")).to_contain_text("Your entries are back. They aren’t saved yet.")
    await expect(page.get_by_label("Name", exact=True)).to_have_value("Release writer")
    await expect(page.get_by_label("System prompt")).to_have_value("Write release notes.")
    await page.get_by_role("button", name="Create agent").click()
    await expect(page.get_by_role("link", name="New agent")).to_be_visible()
    await page.get_by_role("link", name="New agent").click()
    await expect(page.get_by_label("Name", exact=True)).to_have_value("")


async def test_entries_survive_the_back_button(ana: Person) -> None:
    """LIVE-04: a user who has left the form comes back to the texts that they had entered."""
    page = await open_new_agent(ana)
    entries = {"Name": "Reviewer", "System prompt": "Two pages", "Opening prompts": "Review it"}
    for label, text in entries.items():
        await page.get_by_label(label, exact=True).fill(text)
    page.once("dialog", lambda question: question.accept())
    await page.get_by_role("link", name="Cancel").click()
    await expect(page.get_by_role("heading", name="New agent")).to_have_count(0)
    await page.go_back()
    for label, text in entries.items():
        await expect(page.get_by_label(label, exact=True)).to_have_value(text)


async def test_entries_survive_an_expired_form(ana: Person) -> None:
    """If another tab has signed in, the form has expired. When the user goes back, it is filled in again."""
    ana.ignore_refusals()
    page = await open_new_agent(ana)
    await page.get_by_label("System prompt").fill("Write release notes.")
    await page.get_by_label("Name", exact=True).fill("Release writer")
    await page.context.clear_cookies(name="parley_csrf")
    await page.get_by_role("button", name="Create agent").click()
    await expect(page.get_by_role("heading", name="This form has expired")).to_be_visible()
    await page.go_back()
    await expect(page.get_by_label("System prompt")).to_have_value("Write release notes.")
    await page.get_by_role("button", name="Create agent").click()
    await expect(page.locator("#toasts")).to_contain_text("created")
