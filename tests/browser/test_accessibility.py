"""Check every screen with axe-core (WCAG 2.2 AA), and its console for errors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import Browser, Page

from tests.browser.console import AS_SERVED, heed
from tests.browser.gallery import SCREENS, Showcase, leave, visit

RULES: dict[str, object] = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],
    "preload": False,
}
# A theme changes only colours.
COLOUR_RULES = RULES | {"runOnly": ["color-contrast", "link-in-text-block"]}
AT_ONCE = 2
SCREENS_IN_A_TEST = 25  # few enough for several processes to share the work
# Elements that make a reader scroll sideways; content that may scroll is in a box of its own inside these.
SIDEWAYS = """() => [...document.querySelectorAll("html, body, main, nav, aside, dialog[open], main > :not(.sr-only)")]
  .filter((each) => each.clientWidth && each.scrollWidth > each.clientWidth + 1
    && (each.matches("html") || getComputedStyle(each).overflowX !== "visible"))
  .map((each) => `wider than its place: ${each.outerHTML.slice(0, 80)}`)"""
# `make test` checks these screens on a phone, where their layout differs, and all others on a desktop.
ON_PHONE = [
    "find",
    "home",
    "home-rail",
    "import-choice",
    "imported",
    "keys",
    "long-draft",
    "message-edit",
    "message-menu",
    "model-picker",
    "more",
    "panel",
    "panel-context-end",
    "panel-context-past",
    "queued",
    "rail-menu",
    "reference",
    "rename",
    "session",
    "session-tools",
    "settings",
    "settings-saved",
    "share",
    "shared-suggest",
    "slash",
    "staff-agent-refused",
    "staff-person",
    "staff-workspace",
    "two-step-app",
    "typing",
    "uploads",
    "workspaces-menu",
]
# The browser reports these statuses in its console; the screen is about the response.
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


def looks() -> Iterator[Any]:
    """Yield one light check per screen, and marked checks for the other size and for dark at both sizes."""
    sizes = {"phone": set(ON_PHONE), "desktop": set(SCREENS) - set(ON_PHONE)}
    for size, here in sizes.items():
        elsewhere = set(SCREENS) - here
        for kind, names, themes in [
            ("", here, ["light"]),
            ("-dark", here, ["dark"]),
            ("-more", elsewhere, ["light", "dark"]),
        ]:
            parts = -(-len(names) // SCREENS_IN_A_TEST)
            for part in range(parts):
                marks = pytest.mark.every_look if kind else ()
                of_part = sorted(names)[part::parts]
                yield pytest.param(of_part, size == "phone", themes, marks=marks, id=f"{size}{kind}-{part + 1}")


@pytest.mark.parametrize(("names", "phone", "themes"), list(looks()))
async def test_nothing_is_wrong_on_any_screen(
    browser: Browser, showcase: Showcase, names: list[str], phone: bool, themes: list[str]
) -> None:
    """UI-01 to UI-11: names, roles, contrast, landmarks and target sizes, on every screen in every state.

    No script fails, no file is missing, and no served markup needs what the CSP forbids.
    """
    found = {}
    hands = asyncio.Semaphore(AT_ONCE)

    async def look_at(name: str) -> None:
        async with hands:
            page = await visit(browser, showcase, phone=phone)
            await page.add_init_script(AS_SERVED)
            complaints = heed(page, f"responded with a status of {ANSWERS.get(name)} ")
            await SCREENS[name](page, showcase)
            wrong: list[str] = []
            if "light" in themes:
                wrong += [*await page.evaluate(SIDEWAYS), *await violations(page)]
            if "dark" in themes:
                await page.emulate_media(color_scheme="dark")
                wrong += [f"in the dark: {each}" for each in await violations(page, COLOUR_RULES)]
            if wrong or complaints:
                found[name] = [*complaints, *wrong]
            await leave(page)

    async with asyncio.TaskGroup() as looking:
        for name in names:
            looking.create_task(look_at(name))
    assert found == {}
