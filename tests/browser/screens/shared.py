"""Screens of a session with several users: edits, suggestions, stops, retries, a guest's view, and refusals."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.browser.screens import Showcase, answered, begin, enter, open_sidebar, say, screen, sign_in_as


@screen
async def shared(page: Page, showcase: Showcase) -> None:
    """A session that others have edited and one has stopped, with an error and messages on hold."""
    await enter(page, showcase.shared)


@screen
async def shared_held(page: Page, showcase: Showcase) -> None:
    await shared(page, showcase)
    await page.locator(".queue-fold").click()


@screen
async def shared_suggestions(page: Page, showcase: Showcase) -> None:
    await shared(page, showcase)
    await page.get_by_role("button", name="2 suggested edits").click()
    await page.locator(".suggestion").last.scroll_into_view_if_needed()


@screen
async def shared_suggestion_own(page: Page, showcase: Showcase) -> None:
    """A suggested edit as its author sees it."""
    await sign_in_as(page, showcase, "mei")
    await shared_suggestions(page, showcase)


@screen
async def shared_suggest(page: Page, showcase: Showcase) -> None:
    await sign_in_as(page, showcase, "priya")
    await shared(page, showcase)
    await page.locator("article.user").first.press("e")
    await expect(page.get_by_role("textbox", name="Suggest an edit")).to_be_focused()


@screen
async def retry_question(page: Page, showcase: Showcase) -> None:
    await shared(page, showcase)
    message = page.locator("article.assistant").first
    await message.press("m")
    await page.get_by_role("menuitem", name="Retry from here").click()
    await expect(page.get_by_role("dialog", name="Retry from here?")).to_be_visible()


@screen
async def retried(page: Page, showcase: Showcase) -> None:
    """An answer that was replaced by a retry, with Undo."""
    await begin(page, "who")
    await answered(page)
    await page.locator("article.assistant").press("r")
    await expect(page.locator("#toasts")).to_contain_text("replaced")
    await expect(page.locator("[data-attempts='2']")).to_have_count(1)
    await answered(page)


@screen
async def attempts(page: Page, showcase: Showcase) -> None:
    """The removed messages after an attempt was restored."""
    await retried(page, showcase)
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator("#toasts")).to_contain_text("restored")
    await page.locator("#more").click()
    await page.get_by_role("menuitem", name="Removed messages").click()
    await expect(page.get_by_role("button", name="Restore these messages")).to_be_visible()


@screen
async def failed(page: Page, showcase: Showcase) -> None:
    """An error that another model may avoid."""
    await begin(page, "error")
    await expect(page.get_by_role("button", name="Choose another model")).to_be_visible()


@screen
async def guest_home(page: Page, showcase: Showcase) -> None:
    await sign_in_as(page, showcase, "gil")
    await page.goto("/")
    await open_sidebar(page)


@screen
async def guest_session(page: Page, showcase: Showcase) -> None:
    await sign_in_as(page, showcase, "gil")
    await shared(page, showcase)


@screen
async def guest_refused(page: Page, showcase: Showcase) -> None:
    await guest_session(page, showcase)
    await say(page, "/new")
    await expect(page.locator("#notices")).to_contain_text("/new")
