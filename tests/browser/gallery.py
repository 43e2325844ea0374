"""All screens of Parley with the rows of the showcase, for screenshots and checks.

`python -m tests.browser.gallery FOLDER [screen …]` takes screenshots for desktop and phone, light and dark.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright

from agents.messages import Json
from tests.browser.launch import launch
from tests.browser.person import PATIENCE
from tests.browser.screens import (
    SCREENS,
    Showcase,
    admin_screens,
    files,
    leave,
    leave_alone,
    overlays,
    past,
    places,
    questions,
    shared,
    sign_in_as,
    staff,
    talk,
    teams,
)
from tests.support.server import ForkedServer, run_forked

__all__ = [
    "SCREENS",
    "Showcase",
    "admin_screens",
    "files",
    "leave",
    "overlays",
    "past",
    "places",
    "questions",
    "shared",
    "staff",
    "talk",
    "teams",
]
LIGHT = "/healthz"  # a page of the same site without any script
DESKTOP: Json = {"viewport": {"width": 1280, "height": 800}}
PHONE: Json = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}


@asynccontextmanager
async def open_showcase(data: Path) -> AsyncIterator[Showcase]:
    output = await asyncio.to_thread(run_forked, "tests/support/showcase.py", data=data)
    server = ForkedServer(data)
    await asyncio.to_thread(server.start)
    try:
        yield Showcase(server.address, **json.loads(output))
    finally:
        await asyncio.to_thread(server.stop)


async def visit(
    browser: Browser, showcase: Showcase, *, phone: bool = False, dark: bool = False, who: str = "ana"
) -> Page:
    """Open a browser context in which a user is signed in."""
    look: Json = {"color_scheme": "dark" if dark else "light", "reduced_motion": "reduce"}
    context = await browser.new_context(base_url=showcase.address, **(PHONE if phone else DESKTOP), **look)
    context.set_default_timeout(PATIENCE)
    page = await context.new_page()
    await sign_in_as(page, showcase, who)
    return page


async def start_over(page: Page, showcase: Showcase, who: str = "ana") -> None:
    """Reset a visitor's browser, but keep its caches and processes, which a new browser would have to create again."""
    await leave_alone(page)
    await page.goto(LIGHT)
    await page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
    await sign_in_as(page, showcase, who)


async def take(browser: Browser, showcase: Showcase, name: str, folder: str) -> None:
    """Take the four screenshots of a screen."""
    for phone in (False, True):
        for dark in (False, True):
            page = await visit(browser, showcase, phone=phone, dark=dark)
            await SCREENS[name](page, showcase)
            look = f"{name}-{'phone' if phone else 'desktop'}-{'dark' if dark else 'light'}.png"
            await page.screenshot(path=f"{folder}/{look}")
            await leave(page)


async def main(folder: str, screens: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="parley-gallery-") as data:
        async with open_showcase(Path(data)) as showcase, async_playwright() as playwright:
            browser = await launch(playwright, "chromium")
            for name in screens or SCREENS:
                await take(browser, showcase, name, folder)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
