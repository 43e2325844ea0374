"""Reports in Firefox's console on the main screens. The flows that run in Firefox are marked `both_browsers`."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser

from tests.browser.console import AS_SERVED, collect_reports
from tests.browser.gallery import SCREENS, Showcase, start_over, visit
from tests.browser.person import Person
from tests.browser.test_accessibility import SIDEWAYS

MAIN = [
    "sign-in",
    "home",
    "session",
    "session-code",
    "session-tools",
    "message-edit",
    "queued",
    "panel",
    "panel-context",
    "share",
    "palette",
    "lightbox",
    "settings",
    "two-step",
    "export",
    "workspaces",
    "reference",
    "staff-home",
    "staff-agent",
]
in_firefox = pytest.mark.parametrize("browser", ["firefox"], indirect=True)


@in_firefox
async def test_main_screens_report_nothing(browser: Browser, showcase: Showcase) -> None:
    """UI-01, UI-11: no script fails, no file is missing, the CSP refuses nothing, and nothing scrolls sideways."""
    found = {}
    page = await visit(browser, showcase)
    await page.add_init_script(AS_SERVED)
    for name in MAIN:
        reports = collect_reports(page)
        await SCREENS[name](page, showcase)
        if wrong := [*reports, *await page.evaluate(SIDEWAYS)]:
            found[name] = wrong
        await start_over(page, showcase)
    assert found == {}


@in_firefox
async def test_firefox_reports_errors_refusals_and_missing_files(ana: Person) -> None:
    """The console of Firefox reports all three, because a check without reports would always pass."""
    page = ana.page
    async with page.expect_event("pageerror"):
        await page.evaluate("setTimeout(() => { throw new Error('broken') })")
    async with page.expect_event("pageerror"):
        await page.evaluate("document.body.append(Object.assign(document.createElement('script'), { text: 'x' }))")
    async with page.expect_response("**/missing"):
        assert await page.evaluate("fetch('/missing').then((response) => response.status)") == 404
    broken, refused, missing = ana.reports
    assert "broken" in broken
    assert "script-src-elem" in refused
    assert "status of 404" in missing
    ana.reports.clear()
