"""Screens of the history of a message and of the system prompt, of removed messages, and of conflicting edits."""

from __future__ import annotations

from playwright.async_api import Locator, Page, expect

from tests.browser.screens import Showcase, answered, begin, beside, enter_small, screen


async def _begun(page: Page) -> Locator:
    """Start a session with an answer, and return its first message."""
    await begin(page, "Who are you, and what can you do?")
    await answered(page)
    return page.locator("article.user")


async def _edit(page: Page, message: Locator, text: str) -> None:
    await message.press("e")
    field = page.get_by_role("textbox", name="Edit message")
    await field.fill(text)
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(field).to_have_count(0)


@screen
async def message_history(page: Page, showcase: Showcase) -> None:
    message = await _begun(page)
    await _edit(page, message, "Who are you, and what can you do for a team of five?\n\nPlease be brief.")
    await message.press("x")
    await expect(message.locator(".meta")).to_contain_text("hidden from the model")
    await message.get_by_role("button", name="edited").click()
    await expect(page.get_by_role("dialog", name="Edit history")).to_be_visible()


@screen
async def prompt_history(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)
    await page.keyboard.press("Control+.")
    await page.locator("#panel [data-action=history]").click()
    await expect(page.get_by_role("dialog", name="System prompt history")).to_be_visible()


@screen
async def removed(page: Page, showcase: Showcase) -> None:
    message = await _begun(page)
    answer = page.locator("article.assistant")
    await answer.press("r")
    await expect(page.locator("main.session")).not_to_have_attribute("data-status", "idle")
    await answered(page)
    await message.press("Delete")
    await expect(message).to_have_count(0)
    await page.locator("#more").click()
    await page.get_by_role("menuitem", name="Removed messages").click()
    await expect(page.get_by_role("button", name="Restore", exact=True)).to_be_visible()


@screen
async def conflict(page: Page, showcase: Showcase) -> None:
    """A conflict between two edits of a message, of which the other one was saved first."""
    message = await _begun(page)
    await message.press("e")
    await page.get_by_role("textbox", name="Edit message").fill("Who are you, and what do you cost?")
    other = await beside(page, showcase, "ana")
    await other.goto(page.url)
    await expect(other.locator("#connection")).to_have_attribute("data-state", "connected")
    await _edit(other, other.locator("article.user"), "Who are you, and what can you do for us?")
    await expect(page.get_by_role("button", name="Keep the other one")).to_be_visible()
