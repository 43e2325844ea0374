"""The page that documents the API. It is public, has the strict CSP, and is readable on every screen size."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from tests.browser.console import AS_SERVED, collect_reports
from tests.browser.test_accessibility import SIDEWAYS, violations
from tests.support.server import Server

VIEWPORTS = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}
FOCUSED = "() => document.activeElement.textContent.trim()"
MAX_TABS = 20


@pytest.mark.parametrize("size", ["desktop", pytest.param("phone", marks=pytest.mark.every_look)])
async def test_reference_is_accessible_in_the_dark_theme(browser: Browser, server: Server, size: str) -> None:
    """LIVE-03, UI-11: every group of operations is opened. The gallery's screens include the light theme."""
    context = await browser.new_context(
        base_url=server.address,
        viewport=VIEWPORTS[size],  # type: ignore[arg-type]  # a TypedDict of Playwright's
        color_scheme="dark",
        reduced_motion="reduce",
    )
    page = await context.new_page()
    await page.add_init_script(AS_SERVED)
    reports = collect_reports(page)
    response = await page.goto("/api/docs")
    assert response is not None
    assert "unsafe" not in response.headers["content-security-policy"]
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await page.evaluate("() => document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert [*reports, *await page.evaluate(SIDEWAYS), *await violations(page, is_long=True)] == []


async def test_reference_works_by_keyboard(browser: Browser, server: Server) -> None:
    """LIVE-03, UI-11: a user opens a group, an operation, and from there the object that it returns."""
    page = await (
        await browser.new_context(base_url=server.address, viewport={"width": 1280, "height": 800})
    ).new_page()
    reports = collect_reports(page)
    await page.goto("/api/docs")

    async def tab_to(text: str) -> None:
        for _ in range(MAX_TABS):
            await page.keyboard.press("Tab")
            if await page.evaluate(FOCUSED) == text:
                return
        raise AssertionError(f"{text} is not reached")

    await tab_to("Events")
    await page.keyboard.press("Enter")
    await tab_to("Stream the events of a session")
    await page.keyboard.press("Enter")
    operation = page.locator("#streamEvents")
    await expect(operation).to_be_in_viewport()
    await tab_to("Event")
    await page.keyboard.press("Enter")
    await expect(page.locator("#Event")).to_be_in_viewport()
    await tab_to("TurnStartEvent")
    assert reports == []
