"""Screens of the admin: the list of all sessions, the page of a session, and the forms for its messages."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.browser.screens import Showcase, is_phone, screen, sign_in_as, speak

LIST = "/admin/chat/session/"


async def _of_session(page: Page, showcase: Showcase) -> None:
    await sign_in_as(page, showcase, "admin")
    session = showcase.session.strip("/").rpartition("/")[2]
    await page.goto(f"{LIST}{session.replace('_', '_5F')}/change/?p=1")


@screen
async def staff_home(page: Page, showcase: Showcase) -> None:
    await sign_in_as(page, showcase, "admin")
    await page.goto("/admin/")


@screen
async def staff_sessions(page: Page, showcase: Showcase) -> None:
    await sign_in_as(page, showcase, "admin")
    await page.goto(LIST)


@screen
async def staff_security(page: Page, showcase: Showcase) -> None:
    await sign_in_as(page, showcase, "admin")
    await page.goto("/admin/chat/securityevent/")


@screen
async def staff_workers(page: Page, showcase: Showcase) -> None:
    await sign_in_as(page, showcase, "admin")
    await page.goto("/admin/chat/worker/")


@screen
async def staff_draining(page: Page, showcase: Showcase) -> None:
    await staff_workers(page, showcase)
    await page.locator("input.action-select").first.check()
    await page.locator("select[name=action]").select_option("drain")
    await page.get_by_role("button", name="Apply").click()
    await expect(page.get_by_role("button", name="Drain")).to_be_visible()


@screen
async def staff_runs(page: Page, showcase: Showcase) -> None:
    await sign_in_as(page, showcase, "admin")
    await page.goto("/admin/chat/sessionrun/")


@screen
async def staff_session(page: Page, showcase: Showcase) -> None:
    await _of_session(page, showcase)


@screen
async def staff_messages(page: Page, showcase: Showcase) -> None:
    await _of_session(page, showcase)
    await page.locator(".message-row.tool_group").first.scroll_into_view_if_needed()


@screen
async def staff_message(page: Page, showcase: Showcase) -> None:
    await _of_session(page, showcase)
    await page.locator(".message-row.tool_group").first.get_by_role("link").click()
    await expect(page.get_by_label("Arguments")).to_be_visible()


@screen
async def staff_refused(page: Page, showcase: Showcase) -> None:
    await staff_message(page, showcase)
    await page.get_by_label("Arguments").fill('{"n": }')
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("alert")).to_be_visible()


@screen
async def staff_erase(page: Page, showcase: Showcase) -> None:
    """The confirmation of an erasure, which lists what it erases."""
    await _of_session(page, showcase)
    await page.get_by_role("button", name="Erase…").click()
    await expect(page.get_by_label("Erase permanently")).to_be_visible()


@screen
async def staff_navigation(page: Page, showcase: Showcase) -> None:
    """The navigation, which is a drawer on a phone."""
    await staff_home(page, showcase)
    if is_phone(page):
        await page.get_by_role("button", name="Open navigation").click()


@screen
async def staff_sessions_chinese(page: Page, showcase: Showcase) -> None:
    await staff_sessions(page, showcase)
    await speak(page, showcase, "zh-hans")
    await page.reload()
