"""Check every screen with axe-core (WCAG 2.2 AA), and its console for errors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import Browser, Page

from tests.browser.console import AS_SERVED, collect_reports
from tests.browser.gallery import SCREENS, Showcase, leave, start_over, visit
from tests.support.effort import ALL

RULES: dict[str, object] = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],
    "preload": False,
}
# The contrast check takes a minute on pages with thousands of texts. Texts in elements with the same names and classes
# up to the root have the same colors, so only one of each kind is checked. `make test-all` checks all.
LONG_PAGES = ("reference",)
OF_EACH_KIND = """async (rules) => {
    const kinds = new Set();
    const kind = (element) => element ? `${kind(element.parentElement)} ${element.localName}.${element.className}` : "";
    const isNew = (name) => !kinds.has(name) && kinds.add(name);
    const hasText = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const seen = [...document.body.querySelectorAll("*")].filter((each) => hasText(each) && each.checkVisibility());
    const include = seen.filter((each) => isNew(kind(each)));
    const rest = { ...rules, rules: { "color-contrast": { enabled: false } } };
    const contrast = { ...rules, runOnly: ["color-contrast"] };
    return [...(await axe.run(document, rest)).violations, ...(await axe.run({ include }, contrast)).violations];
}"""
# A theme changes only colors.
COLOR_RULES = RULES | {"runOnly": ["color-contrast", "link-in-text-block"]}
AT_ONCE = 2
CUTS_THE_NETWORK = ("broken", "home-refused", "session-offline")  # their browsers show no other screens
SCREENS_IN_A_TEST = 25  # few enough for several processes to share the work
# Finds elements that users would have to scroll sideways. Content that may scroll has its own box inside of these.
SIDEWAYS = """() => [...document.querySelectorAll("html, body, main, nav, aside, dialog[open], main > :not(.sr-only)")]
  .filter((each) => each.clientWidth && each.scrollWidth > each.clientWidth + 1
    && (each.matches("html") || getComputedStyle(each).overflowX !== "visible"))
  .map((each) => `wider than its place: ${each.outerHTML.slice(0, 80)}`)"""
# Finds positioned elements that do not scroll with their column. If the columns of a page scroll, the page must not.
AWAY = """() => {
  const scrolls = (each) => /auto|scroll/.test(getComputedStyle(each).overflow);
  const scrollerOf = (each) => each === document.body ? null : scrolls(each) ? each : scrollerOf(each.parentElement);
  const isOutside = (each) => getComputedStyle(each).position === "absolute" && each.offsetParent
    && scrollerOf(each.parentElement)?.contains(each.offsetParent) === false;
  const isLong = document.querySelector(".app") && document.documentElement.scrollHeight > innerHeight;
  return [
    ...(isLong ? ["the page itself scrolls"] : []),
    ...[...document.querySelectorAll("body *")].filter(isOutside)
      .map((each) => `does not scroll with what is around it: ${each.outerHTML.slice(0, 80)}`),
  ];
}"""
CONTROLS = "a[href], :is(button, input, select, textarea):enabled, summary, [role=tab], [role^=menuitem], [role=option]"
SMALL_ONES = ".copy, .csv, .download, .wrap, .preview, .show, .edited, .switch"
# Finds controls that are too small for a thumb. Pages on a desktop have smaller ones, and so has the admin, which is
# Django's. The area of a control is its own, or that of its ::after, its label, or the row that it selects.
SMALL = """() => {
  const isPhone = matchMedia("(width < 760px) and (pointer: coarse)").matches;
  if (!isPhone || location.pathname.startsWith("/admin/")) return [];
  const dialog = document.querySelector("dialog:modal");
  const isShown = (each) => each.checkVisibility(
    { visibilityProperty: true, opacityProperty: true, contentVisibilityAuto: true })
    && !each.closest(".sr-only, .skip") && (!dialog || dialog.contains(each));
  const isInText = (each) => each.localName === "a" && getComputedStyle(each).display === "inline";
  const after = (each) => {
    const { position, width, height } = getComputedStyle(each, "::after");
    return position === "absolute" ? [parseFloat(width) || 0, parseFloat(height) || 0] : [0, 0];
  };
  const rowOf = (each) => each.matches(".session-check") && each.closest(".session-row");
  const areas = (each) => [each, each.closest(".switch"), rowOf(each), ...(each.labels ?? [])]
    .filter(Boolean)
    .flatMap((one) => [[one.offsetWidth, one.offsetHeight], after(one)]);
  const around = (each) => [0, 1].map((side) => Math.max(...areas(each).map((area) => area[side])));
  return [...document.querySelectorAll("CONTROLS")]
    .filter((each) => isShown(each) && !isInText(each) && around(each).some((length) => length < 44))
    .map((each) => `smaller than 44 pixels: ${around(each)} ${each.outerHTML.slice(0, 80)}`);
}""".replace("CONTROLS", CONTROLS)
# Finds small buttons whose area is partly that of a neighbor, which gets the press.
COVERED = """(selectors) => [...document.querySelectorAll(selectors)].filter((each) => {
  if (!each.checkVisibility({ visibilityProperty: true })) return false;
  each.scrollIntoView({ block: "center", behavior: "instant" });
  const { x, y } = each.getBoundingClientRect();
  const [left, top, width, height] = ["left", "top", "width", "height"].map(
    (name) => parseFloat(getComputedStyle(each, "::after")[name]));
  const isHit = ([right, down]) => each.contains(document.elementFromPoint(x + left + right, y + top + down));
  const [end, bottom] = [width - 1, height - 1];
  return ![[1, 1], [end, 1], [1, bottom], [end, bottom], [width / 2, height / 2]].every(isHit);
}).map((each) => each.outerHTML.slice(0, 80))"""
# Finds controls that are partly outside of the window.
OUTSIDE = """(controls) => [...document.querySelectorAll(controls)]
  .filter((each) => each.checkVisibility())
  .map((each) => [each.getBoundingClientRect(), each.outerHTML.slice(0, 80)])
  .filter(([{ width, left, right }]) => width > 1 && (left < 0 || right > innerWidth))
  .map(([, html]) => html)"""
# `make test` checks these screens on a phone, where their layout differs, and all others on a desktop.
ON_PHONE = [
    "find",
    "home",
    "home-sidebar",
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
    "session-menu",
    "reference",
    "rename",
    "schedules",
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
# The statuses that the browser reports in its console for screens that show such a response.
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


async def violations(page: Page, rules: dict[str, object] = RULES, *, is_long: bool = False) -> list[str]:
    await page.evaluate(AXE_SCRIPT)
    # Returns only violations, because the rest would be most of the result.
    whole = "async (rules) => (await axe.run(document, rules)).violations"
    result = await page.evaluate(OF_EACH_KIND if is_long and not ALL else whole, rules)
    return [
        f"{found['id']} ({found['help']}): {node['target']} {node.get('failureSummary', '')}"
        for found in result
        for node in found["nodes"]
    ]


def looks() -> Iterator[Any]:
    """Yield one check in the light theme per screen. Checks of the other size and the dark theme are marked."""
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
    waiting = iter(names)

    async def visit_screens() -> None:
        page = None
        for name in waiting:
            if page is None:
                page = await visit(browser, showcase, phone=phone)
                await page.add_init_script(AS_SERVED)
            if wrong := await wrong_with(page, showcase, name, themes):
                found[name] = wrong
            if name in CUTS_THE_NETWORK:
                await leave(page)
                page = None
            else:
                await start_over(page, showcase)

    async with asyncio.TaskGroup() as visitors:
        for _ in range(AT_ONCE):
            visitors.create_task(visit_screens())
    assert found == {}


@pytest.mark.parametrize("name", ["session", "schedules", "settings"])
async def test_small_buttons_can_be_pressed_beside_them(browser: Browser, showcase: Showcase, name: str) -> None:
    """UI-11: on a phone, the area of a small button is 44 × 44 pixels, and no neighbor takes a part of it."""
    page = await visit(browser, showcase, phone=True)
    await SCREENS[name](page, showcase)
    assert await page.locator(SMALL_ONES).count() > 0
    assert await page.evaluate(COVERED, SMALL_ONES) == []


@pytest.mark.parametrize("name", ["panel", "panel-context-end"])
async def test_panel_fits_into_a_narrow_window(browser: Browser, showcase: Showcase, name: str) -> None:
    """UI-11: no control of the panel is outside of a window of 320 pixels, as at a zoom of 400 %."""
    page = await visit(browser, showcase)
    await SCREENS[name](page, showcase)
    await page.set_viewport_size({"width": 320, "height": 640})
    assert await page.evaluate(OUTSIDE, f"#panel :is({CONTROLS})") == []


async def wrong_with(page: Page, showcase: Showcase, name: str, themes: list[str]) -> list[str]:
    """Open a screen. Return the reports of its console and the violations in these themes."""
    reports = collect_reports(page, f"responded with a status of {ANSWERS.get(name)} ")
    await SCREENS[name](page, showcase)
    wrong: list[str] = []
    if "light" in themes:
        wrong += [each for find in (SIDEWAYS, AWAY, SMALL) for each in await page.evaluate(find)]
        wrong += await violations(page, is_long=name in LONG_PAGES)
    if "dark" in themes:
        await page.emulate_media(color_scheme="dark")
        wrong += [f"in the dark: {each}" for each in await violations(page, COLOR_RULES)]
        await page.emulate_media(color_scheme="light")
    return [*reports, *wrong]
