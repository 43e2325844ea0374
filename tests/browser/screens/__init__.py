"""Every screen and state of the page, each opened as a person opens it.

`SCREENS` has them by name once the modules of this package are imported, as tests/browser/gallery.py does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from playwright.async_api import BrowserContext, Page, expect


@dataclass(frozen=True)
class Showcase:
    """A running Parley with tests/support/showcase.py in its database: its addresses, and who comes in with what."""

    address: str
    cookies: dict[str, str]
    session: str
    small: str
    empty: str
    scratch: str
    shared: str
    waiting: str
    answered: str
    read_only: str
    archived: str
    invitation: str
    link: str
    broken: str


Opener = Callable[[Page, Showcase], Awaitable[None]]
SCREENS: dict[str, Opener] = {}
# Who else has come for a screen, by the browser that it is seen in.
_others: dict[BrowserContext, list[BrowserContext]] = {}


def screen(opener: Opener) -> Opener:
    """Take an opener into the gallery, by its name."""
    SCREENS[opener.__name__.replace("_", "-")] = opener
    return opener


async def enter(page: Page, address: str) -> None:
    """Open a session and wait until it is live."""
    await page.goto(address)
    await expect(page.locator("#connection")).to_have_attribute("data-state", "connected")


async def enter_small(page: Page, showcase: Showcase) -> None:
    """Open session that is quick to load, for what lies over it."""
    await enter(page, showcase.small)
    await expect(page.locator("article.assistant")).to_be_visible()


async def begin(page: Page, text: str) -> None:
    """Begin a session at home."""
    await page.goto("/")
    await say(page, text)
    await expect(page.locator("#messages article.user")).to_contain_text(text)
    await expect(page.locator("#connection")).to_have_attribute("data-state", "connected")


async def say(page: Page, text: str) -> None:
    """Write and press Send: on a phone Enter breaks the line."""
    await page.locator("#text").fill(text)
    await page.locator("form:has(#text) button.primary").click()


async def sign_in_as(page: Page, showcase: Showcase, who: str) -> None:
    """Let another user sit down at this browser."""
    name, value = showcase.cookies[who].split("=", 1)
    await page.context.clear_cookies()
    await page.context.add_cookies([{"name": name, "value": value, "url": showcase.address}])


async def speak(page: Page, showcase: Showcase, language: str) -> None:
    await page.context.add_cookies([{"name": "django_language", "value": language, "url": showcase.address}])


async def beside(page: Page, showcase: Showcase, who: str) -> Page:
    """Open another browser, with another user in the same session; it goes when this page is left."""
    assert page.context.browser is not None
    context = await page.context.browser.new_context(base_url=showcase.address)
    _others.setdefault(page.context, []).append(context)
    other = await context.new_page()
    await sign_in_as(other, showcase, who)
    return other


async def leave(page: Page) -> None:
    """Close the browser, and those of the others."""
    await leave_alone(page)
    await page.context.close()


async def leave_alone(page: Page) -> None:
    """Close the browsers of the others."""
    for context in _others.pop(page.context, []):
        await context.close()


def is_phone(page: Page) -> bool:
    return page.viewport_size is not None and page.viewport_size["width"] < 760


async def open_rail(page: Page) -> None:
    """Bring the list of sessions into sight: on a phone it is a drawer."""
    if is_phone(page):
        await page.get_by_role("button", name="Open session list").click()
        await expect(page.locator(".app")).to_have_class("app drawer-open")
