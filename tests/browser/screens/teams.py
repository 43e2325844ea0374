"""Screens of a user who is in several workspaces."""

from __future__ import annotations

import re

from playwright.async_api import Page, expect

from tests.browser.screens import Showcase, is_phone, open_sidebar, screen, sign_in_as


async def go(page: Page, name: str) -> None:
    """Choose another workspace. A screen that is opened at the same time may have chosen another one for this user."""
    await page.locator("#workspace-switch").click()
    await page.get_by_role("menuitemradio", name=name).click()
    await page.wait_for_url("**/workspaces/*/")
    await expect(page.locator(".current-workspace")).to_have_text(re.compile(name))


@screen
async def workspaces(page: Page, showcase: Showcase) -> None:
    """The switcher with an unread session in another workspace."""
    await sign_in_as(page, showcase, "kenta")
    await page.goto("/")
    await open_sidebar(page)
    await expect(page.locator("#workspace-switch")).to_contain_text("Unread in another workspace")


@screen
async def workspaces_menu(page: Page, showcase: Showcase) -> None:
    await workspaces(page, showcase)
    await page.locator("#workspace-switch").click()
    await expect(page.get_by_role("menuitemradio")).to_have_count(4)


@screen
async def workspaces_long_name(page: Page, showcase: Showcase) -> None:
    """The session list and the home page of another workspace."""
    await workspaces(page, showcase)
    await go(page, "Payments")
    await open_sidebar(page)


@screen
async def workspaces_folded(page: Page, showcase: Showcase) -> None:
    await workspaces(page, showcase)
    if not is_phone(page):
        await page.locator("#sidebar-fold").click()


@screen
async def workspaces_found(page: Page, showcase: Showcase) -> None:
    """Search results with the names of other workspaces."""
    await workspaces(page, showcase)
    await go(page, "Ops")
    await open_sidebar(page)
    await page.locator(".sidebar-action[data-action=search]").click()
    await page.get_by_role("combobox", name="Search sessions, messages and actions").fill("the")
    await expect(page.get_by_role("option").filter(has=page.locator("mark")).first).to_contain_text("Payments")
