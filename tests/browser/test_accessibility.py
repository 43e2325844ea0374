"""On every screen axe-core finds nothing (WCAG 2.2 AA), and the console says nothing."""

from __future__ import annotations

import asyncio

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import Browser, Page

from tests.browser.console import AS_SERVED, heed
from tests.browser.gallery import SCREENS, House, leave, visit

RULES: dict[str, object] = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],
    "preload": False,
}
COLOUR_RULES = RULES | {"runOnly": ["color-contrast", "link-in-text-block"]}
AT_ONCE = 2
# What a reader would have to scroll sideways for; what may scroll so is a box of its own inside these.
SIDEWAYS = """() => [...document.querySelectorAll("html, body, main, nav, aside, dialog[open], main > :not(.sr-only)")]
  .filter((each) => each.clientWidth && each.scrollWidth > each.clientWidth + 1
    && (each.matches("html") || getComputedStyle(each).overflowX !== "visible"))
  .map((each) => `wider than its place: ${each.outerHTML.slice(0, 80)}`)"""
# A theme changes only colours. These screens show all of them: their colours are checked again in the dark theme.
COLOURS = [
    "home",
    "import-choice",
    "join-refused",
    "message-menu",
    "mention",
    "panel-clash",
    "panel-context-end",
    "presence",
    "queued-edit",
    "session",
    "session-lost",
    "session-start",
    "settings-saved",
    "toast",
    "two-step",
    "uploads",
]
# On a phone things stand elsewhere, above one another, and are larger.
PLACES = [
    "find",
    "home-rail",
    "import-choice",
    "imported",
    "keys",
    "long-draft",
    "message-edit",
    "model-picker",
    "more",
    "panel",
    "panel-context-past",
    "queued",
    "rail-menu",
    "reference",
    "rename",
    "session-tools",
    "settings",
    "share",
    "shared-suggest",
    "slash",
    "two-step-app",
    "typing",
    "workspaces-menu",
    "staff-agent-refused",
    "staff-person",
    "staff-workspace",
]
# The browser's own words about an answer that the screen is about.
ANSWERS = {
    "broken": 500,
    "importing": 422,
    "join-over": 410,
    "join-refused": 422,
    "not-allowed": 403,
    "not-found": 404,
    "sign-in-link-over": 410,
    "uploads": 415,
}


async def violations(page: Page, rules: dict[str, object] = RULES) -> list[str]:
    await page.evaluate(AXE_SCRIPT)
    result = await page.evaluate("rules => axe.run(document, rules)", rules)
    return [
        f"{found['id']} ({found['help']}): {node['target']} {node.get('failureSummary', '')}"
        for found in result["violations"]
        for node in found["nodes"]
    ]


@pytest.mark.parametrize(
    ("names", "phone"),
    [*[(list(SCREENS)[part::3], False) for part in range(3)], ([*PLACES, *COLOURS[::3]], True)],
    ids=["desktop-1", "desktop-2", "desktop-3", "phone"],
)
async def test_nothing_is_wrong_on_any_screen(browser: Browser, house: House, names: list[str], phone: bool) -> None:
    """UI-01 to UI-11: names, roles, contrast, landmarks, sizes of what is pressed, on every screen in every state.

    No script fails there, nothing is missing, and nothing that was served needs what the CSP forbids.
    """
    found = {}
    hands = asyncio.Semaphore(AT_ONCE)

    async def look_at(name: str) -> None:
        async with hands:
            page = await visit(browser, house, phone=phone)
            await page.add_init_script(AS_SERVED)
            complaints = heed(page, f"responded with a status of {ANSWERS.get(name)} ")
            await SCREENS[name](page, house)
            wrong = [*await page.evaluate(SIDEWAYS), *await violations(page)]
            if name in COLOURS:
                await page.emulate_media(color_scheme="dark")
                wrong += [f"in the dark: {each}" for each in await violations(page, COLOUR_RULES)]
            if wrong or complaints:
                found[name] = [*complaints, *wrong]
            await leave(page)

    async with asyncio.TaskGroup() as looking:
        for name in dict.fromkeys(names):
            looking.create_task(look_at(name))
    assert found == {}
