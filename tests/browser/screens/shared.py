"""What several people do to one session: edits, suggestions, stops, retries, a guest's view; and what is refused."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.browser.screens import House, begin, enter, open_rail, say, screen, sign_in_as


@screen
async def shared(page: Page, house: House) -> None:
    """Edited by others, stopped by one of them, with an error and messages on hold."""
    await enter(page, house.shared)


@screen
async def shared_held(page: Page, house: House) -> None:
    await shared(page, house)
    await page.locator(".queue-fold").click()


@screen
async def shared_suggestions(page: Page, house: House) -> None:
    await shared(page, house)
    await page.get_by_role("button", name="2 suggested edits").click()
    await page.locator(".suggestion").last.scroll_into_view_if_needed()


@screen
async def shared_suggestion_own(page: Page, house: House) -> None:
    """What the person who suggested an edit sees of it."""
    await sign_in_as(page, house, "mei")
    await shared_suggestions(page, house)


@screen
async def shared_suggest(page: Page, house: House) -> None:
    await sign_in_as(page, house, "priya")
    await shared(page, house)
    await page.locator("article.user").first.press("e")
    await expect(page.get_by_role("textbox", name="Suggest an edit")).to_be_focused()


@screen
async def retry_question(page: Page, house: House) -> None:
    await shared(page, house)
    message = page.locator("article.assistant").first
    await message.press("m")
    await page.get_by_role("menuitem", name="Retry from here").click()
    await expect(page.get_by_role("dialog", name="Retry from here?")).to_be_visible()


@screen
async def retried(page: Page, house: House) -> None:
    """The answer was replaced; that can be undone."""
    await begin(page, "who")
    await expect(page.locator("main.session")).to_have_attribute("data-status", "idle")
    await page.locator("article.assistant").press("r")
    await expect(page.locator("#toasts")).to_contain_text("replaced")
    await expect(page.locator("main.session")).to_have_attribute("data-status", "idle")
    await expect(page.locator("article.assistant")).to_be_visible()


@screen
async def attempts(page: Page, house: House) -> None:
    """An attempt brought back, among the removed messages."""
    await retried(page, house)
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator("#toasts")).to_contain_text("restored")
    await page.locator("#more").click()
    await page.get_by_role("menuitem", name="Removed messages").click()
    await expect(page.get_by_role("button", name="Restore these messages")).to_be_visible()


@screen
async def failed(page: Page, house: House) -> None:
    """An error that another model may mend."""
    await begin(page, "error")
    await expect(page.get_by_role("button", name="Choose another model")).to_be_visible()


@screen
async def guest_home(page: Page, house: House) -> None:
    await sign_in_as(page, house, "gil")
    await page.goto("/")
    await open_rail(page)


@screen
async def guest_session(page: Page, house: House) -> None:
    await sign_in_as(page, house, "gil")
    await shared(page, house)


@screen
async def guest_refused(page: Page, house: House) -> None:
    await guest_session(page, house)
    await say(page, "/new")
    await expect(page.locator("#notices")).to_contain_text("/new")
